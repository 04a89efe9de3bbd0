"""`deepcontext analyze BEFORE --verify AFTER`: whether a change saved what the findings promised.

AFTER is the profile of the changed program, or the program, which is profiled once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile

_NOT_SAVED: Final = 3


def run_verification(
    before: tuple[Profile, Sequence[Finding]],
    after: str,
    find: Callable[[Profile], Sequence[Finding]],
    *,
    as_json: bool,
) -> int:
    """Compare, print, and return the exit code: 3 where less was saved than promised.

    Args:
        before: the first profile and its findings.
        after: a profile (*.dcprof) or a program (*.py), as the user typed it.
        find: returns the findings of the second profile.
        as_json: whether to print one JSON object instead of text.

    Raises:
        UserError: the file does not exist, or the program failed.
    """
    from rich.console import Console  # noqa: PLC0415  loaded by this command only

    from deepcontext.analyzers.verification import verify  # noqa: PLC0415  imports numpy
    from deepcontext.ui.report.text_layout import TextLayout  # noqa: PLC0415
    from deepcontext.ui.report.verification import (  # noqa: PLC0415
        print_verification,
        verification_to_dict,
    )

    changed = _changed(after, before[0])
    found = verify(before, (changed, find(changed)))
    if as_json:
        content = verification_to_dict(found, before[0], changed)
        print(json.dumps(content, indent=2, allow_nan=False))
    else:
        print_verification(TextLayout(Console()), found)
    return 0 if found.holds else _NOT_SAVED


def _changed(after: str, before: Profile) -> Profile:
    from deepcontext.analyzers.experiment import arguments_of  # noqa: PLC0415  as above
    from deepcontext.ui.cli.inputs import load_one  # noqa: PLC0415

    if Path(after).suffix != ".py":
        return load_one(after)
    if not Path(after).is_file():
        raise UserError(f"cannot profile '{after}': there is no such file")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "after.dcprof")
        options = ["--shapes"] if before.run.options.get("shapes") == "True" else []
        arguments = arguments_of(before)
        words = [sys.executable, "-m", "deepcontext", "profile", "-q", "-o", file, *options, after]
        done = subprocess.run([*words, *arguments], check=False, stdout=sys.stderr)  # noqa: S603  the user's program
        if not Path(file).is_file():
            raise UserError(
                f"profiling '{after}' failed with exit code {done.returncode}; its output is above"
            )
        return load_one(file)
