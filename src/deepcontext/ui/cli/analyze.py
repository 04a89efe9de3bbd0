"""`deepcontext analyze`: print what to change, as found by `deepcontext.analyzers`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format.writing import ForeignFileError
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.inputs import ANY_PROFILE, load_one_of, peaks_option
from deepcontext.ui.cli.verify import run_verification
from deepcontext.ui.cli.windows import of_window, window_options
from deepcontext.ui.known_peaks import with_known_peaks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile

_LIMIT_EXCEEDED: Final = 3
# The names of `deepcontext.analyzers.Severity`, which is not imported because it imports numpy.
_SEVERITIES: Final = ("info", "warning", "high")
_LAYOUT: Final = 1


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext analyze",
        usage="deepcontext analyze [options] FILE",
        description="Print what to change in a profiled program, why, and the largest possible gain.\n"
        "Only reads the profile, unless --save is given, which stores the findings in the profile.",
        epilog="""\
examples:
  deepcontext analyze train.dcprof
  deepcontext analyze train.dcprof --min-gain 5%
  deepcontext analyze train.dcprof --markdown > comment.md
  deepcontext analyze train.dcprof --fail-on high
  deepcontext analyze train.dcprof --verify after.dcprof

exit codes:
  0 done, 2 unknown analyzer, missing file or a file that --save may not write, 3 a finding at least as
  severe as --fail-on exists; with --verify: no finding is gone, or less was saved than expected, 5 the
  file is damaged, foreign or too new""",
    )
    parser.option("file", metavar="FILE", help=ANY_PROFILE)
    parser.option("--json", action="store_true", help="print one JSON object instead of text")
    peaks_option(parser)
    window_options(parser)
    parser.option("--markdown", action="store_true", help="print Markdown, for a pull request")
    parser.option(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="run only this analyzer, for example hotspot; may be given several times",
    )
    parser.option(
        "--min-gain",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="leave out findings whose maximum gain is below this share, for example 1%% (default: 0)",
    )
    parser.option(
        "--fail-on",
        choices=_SEVERITIES,
        default=None,
        metavar="SEVERITY",
        help="exit with code 3 if a finding is at least this severe: info, warning or high",
    )
    parser.option(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE.py",
        help="also run the analyzers in this file; may be given several times",
    )
    parser.option(
        "--verify",
        metavar="AFTER",
        help="compare with the changed program: say which findings are gone, and whether the program saves "
        "as much as expected; a profile (*.dcprof), or the program (*.py), which is then profiled with "
        "the arguments of FILE",
    )
    parser.option(
        "--save",
        action="store_true",
        help="store all findings in the profile, including findings of plug-ins; 'report' and 'view' "
        "then show the stored findings instead of running the built-in and installed analyzers",
    )
    return parser


def _share(text: str) -> float:
    """Return ``"1%"`` or ``"0.01"`` as 0.01."""
    try:
        value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"expected a share such as 1% or 0.01, found '{text}'")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from deepcontext.analyzers import (  # noqa: PLC0415
        encode_section,
        load_plugin,
        run_analyzers,
        with_worker_lines,
    )
    from deepcontext.analyzers.base import promising  # noqa: PLC0415
    from deepcontext.analyzers.finding import SECTION  # noqa: PLC0415

    if arguments.verify and (arguments.save or arguments.fail_on or arguments.markdown):
        raise UserError("--verify only compares; leave out --save, --fail-on and --markdown")
    if (arguments.save or arguments.verify) and arguments.window is not None:
        raise UserError("--save and --verify are about whole runs; leave out --window")
    if arguments.save and arguments.only:
        raise UserError("--save stores the findings of all analyzers; leave out --only")
    profile, others = load_one_of(arguments.file)
    profile = of_window(with_known_peaks(profile, arguments.peaks), arguments)
    plugins = [each for file in arguments.plugin for each in load_plugin(Path(file))]
    findings = run_analyzers(profile, only=arguments.only, plugins=plugins)
    findings = with_worker_lines(findings, profile, lambda: others)
    if arguments.verify:
        return run_verification(
            (profile, promising(findings, arguments.min_gain)),
            arguments.verify,
            lambda after: run_analyzers(after, only=arguments.only, plugins=plugins),
            as_json=arguments.json,
        )
    if arguments.save:
        _save(profile.with_section(SECTION, encode_section(findings, profile)), arguments.file)
    shown = promising(findings, arguments.min_gain)
    _print(arguments, profile, shown)
    if arguments.fail_on is None:
        return 0
    least = _SEVERITIES.index(arguments.fail_on)
    return _LIMIT_EXCEEDED if any(each.severity.rank >= least for each in shown) else 0


def _save(profile: Profile, file: str) -> None:
    try:
        profile.save(file)
    except ForeignFileError as error:
        raise UserError(
            f"cannot store the findings in '{file}': it is write-protected; make it writable, or "
            "leave out --save"
        ) from error


def _print(arguments: argparse.Namespace, profile: Profile, findings: Sequence[Finding]) -> None:
    from rich.console import Console  # noqa: PLC0415

    from deepcontext.ui.report.findings import print_findings, to_markdown  # noqa: PLC0415
    from deepcontext.ui.report.text_layout import TextLayout  # noqa: PLC0415

    if arguments.json:
        content: dict[str, Any] = {
            "format": "deepcontext findings",
            "version": _LAYOUT,
            "findings": [finding.to_dict(profile) for finding in findings],
        }
        print(json.dumps(content, indent=2, allow_nan=False))
    elif arguments.markdown:
        print(to_markdown(profile, findings), end="")
    else:
        print_findings(TextLayout(Console()), profile, findings)
