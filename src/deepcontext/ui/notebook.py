"""Profiles in notebooks: the page in a cell's output, and the cell magic ``%%deepcontext``.

Needs IPython for the magic only. The page is the one-file page (`web/one_file.py`) in a frame
without access to the notebook around it.
"""

from __future__ import annotations

import html
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import deepcontext
from deepcontext.errors import UserError
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.session_options import add_session_options, session_options
from deepcontext.ui.web.one_file import make_page
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_HEIGHT_PX: Final = 640


def profile_html(profile: Profile, name: str = "profile") -> str:
    """Return a frame that shows the page of a profile.

    Args:
        profile: the profile.
        name: name of the profile on the page.
    """
    page = make_page(OpenProfiles([OpenProfile.of_memory(profile, name)]))
    # In ASCII, so that the page's security policy recognises its script under any encoding.
    text = html.escape(page.text).encode("ascii", "xmlcharrefreplace").decode()
    return (
        f'<iframe srcdoc="{text}" sandbox="allow-scripts" '
        f'title="deepcontext: {html.escape(name)}" width="100%" height="{_HEIGHT_PX}" '
        'style="border: 1px solid #ccc; border-radius: 8px"></iframe>'
    )


def load_ipython_extension(shell: Any) -> None:
    """Register ``%%deepcontext``; called by ``%load_ext deepcontext``.

    Args:
        shell: IPython's `InteractiveShell`.
    """
    shell.register_magic_function(CellMagic(shell).run, "cell", "deepcontext")


class CellMagic:
    """Profiles a cell and shows the page below the cell.

    Args:
        shell: IPython's `InteractiveShell`.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def run(self, line: str, cell: str) -> None:
        """Profile a cell: ``%%deepcontext [options] [-o FILE [--force]] [--var NAME]``.

        Takes the session options of `deepcontext profile`, such as ``--shapes``. ``-o`` also writes
        the profile to a file, with ``--force`` replacing any other file; ``--var`` keeps the profile
        in a variable of this name. The cell's output and exceptions appear as without the magic.
        """
        from IPython.core.error import UsageError  # noqa: PLC0415  only notebooks have it
        from IPython.display import display  # noqa: PLC0415  the same

        try:
            options = _parser().parse(shlex.split(line))
            wanted = asdict(session_options(options))
            deepcontext.start(options.output, force=options.force, **wanted)
        except SystemExit:  # argparse exits after it printed a help text
            return
        except (UserError, ValueError) as error:  # ValueError: an unclosed quote
            raise UsageError(str(error)) from error
        reason = "exit"
        try:
            result = self._shell.run_cell(cell, store_history=False)
            if result.error_in_exec is not None:
                reason = f"exception: {type(result.error_in_exec).__name__}"
        finally:
            profile = deepcontext.stop(reason)
        if options.var:
            self._shell.user_ns[options.var] = profile
        display(profile)


def _parser() -> Parser:
    parser = Parser(
        "%%deepcontext",
        usage="%%deepcontext [options] [-o FILE [--force]] [--var NAME]".replace("%", "%%"),
        description="Profile this cell and show where its time went.",
        epilog="",
    )
    parser.option("-o", "--output", metavar="FILE", help="also write the profile to a file")
    parser.option("--force", action="store_true", help="also replace a file that is not a profile")
    parser.option("--var", metavar="NAME", help="keep the profile in this variable")
    add_session_options(parser)
    return parser
