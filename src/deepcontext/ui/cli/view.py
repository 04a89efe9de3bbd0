"""`deepcontext view`: browse profiles in the page of `deepcontext.ui.web`."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import webbrowser
from functools import partial
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.peaks import read_file
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.inputs import ANY_PROFILE, peaks_option
from deepcontext.ui.cli.output import Output, add_force_option
from deepcontext.ui.cli.windows import of_window, window_options

if TYPE_CHECKING:
    from werkzeug.serving import BaseWSGIServer

    from deepcontext.ui.web.open_profiles import OpenProfiles

_HIGHEST_PORT: Final = 65_535
_LOOPBACK: Final = "127.0.0.1"


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext view",
        usage="deepcontext view [options] FILE [FILE ...]",
        description="Browse profiles in a browser, or write them as one HTML file.",
        epilog="""\
examples:
  deepcontext view train.dcprof
  deepcontext view before.dcprof after.dcprof     both, and their difference
  deepcontext view a.dcprof b.dcprof c.dcprof     compared as columns of a table, up to 8
  deepcontext view train.dcrun                    the processes of a job
  deepcontext view train.dcprof --html train.html
  deepcontext view train.dcprof --no-browser --port 8000

exit codes:
  0 done, 2 unknown option or missing file, 4 the port is taken,
  5 the file is damaged, foreign or too new""",
    )
    parser.option("file", nargs="+", metavar="FILE", help=ANY_PROFILE)
    parser.option(
        "--html",
        metavar="FILE",
        help="instead of serving, write one HTML file that needs neither server nor network; - for "
        "standard output",
    )
    add_force_option(parser)
    peaks_option(parser)
    window_options(parser)
    parser.option(
        "--no-source",
        action="store_true",
        help="leave out the text of source files; names, lines and costs remain",
    )
    parser.option(
        "--host",
        default=_LOOPBACK,
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, only this machine)",
    )
    parser.option(
        "--port", type=_port, default=0, metavar="N", help="port to listen on (default: a free one)"
    )
    parser.option(
        "--no-browser", action="store_true", help="print the address without opening a browser"
    )
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(
            f"expected a port from 0 to {_HIGHEST_PORT}, found '{text}'"
        )
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from deepcontext.ui.cli.open_run import open_profiles  # noqa: PLC0415

    if arguments.peaks is not None:
        read_file(arguments.peaks)  # says at once what is wrong with it
    profiles = open_profiles(
        arguments.file,
        source_text=not arguments.no_source,
        peaks=arguments.peaks,
        part_of=partial(of_window, arguments=arguments),
    )
    if arguments.html is not None:
        return _write_html(profiles, arguments)
    return _serve(profiles, arguments)


def _write_html(profiles: OpenProfiles, arguments: argparse.Namespace) -> int:
    from deepcontext.ui.format import format_bytes  # noqa: PLC0415
    from deepcontext.ui.web.one_file import KIND, make_page  # noqa: PLC0415

    output = Output(arguments.html, KIND, arguments.force)
    output.check(arguments.file)
    page = make_page(profiles)
    for notice in page.notices:
        print(f"note: {notice}", file=sys.stderr)
    output.write(page.text.encode())
    if not output.is_stdout:
        print(f"written to '{output.name}', {format_bytes(page.size_bytes)}")
    return 0


def _serve(profiles: OpenProfiles, arguments: argparse.Namespace) -> int:
    from deepcontext.ui.web.app import ViewSettings, create_app, warm_up  # noqa: PLC0415
    from deepcontext.ui.web.guard import machine_names, new_token  # noqa: PLC0415
    from deepcontext.ui.web.serve import address, bind, tunnel  # noqa: PLC0415

    names = () if arguments.host == _LOOPBACK else tuple(machine_names())
    settings = ViewSettings(new_token(), names)
    server = bind(create_app(profiles, settings), arguments.host, arguments.port)
    where = address(arguments.host, server.port, settings.token)
    warm_up(profiles)
    print(where, flush=True)
    remote = tunnel(server.port)
    if remote is not None:
        print(f"first, on your machine: {remote}", flush=True)
    print("Ctrl-C ends it", file=sys.stderr)
    if not arguments.no_browser and remote is None:
        threading.Thread(target=webbrowser.open, args=(where,), daemon=True).start()
    return _until_interrupted(server)


def _until_interrupted(server: BaseWSGIServer) -> int:
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()
    return 0
