"""`deepcontext import`: read files of other profilers into profiles (`deepcontext.profiler.importing`)."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format.writing import PROFILE
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.output import Output, add_anonymise_option, add_force_option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile

_COMPRESSED: Final = ".gz"
_FORMATS: Final = (".json", ".pt.trace", ".pb", ".xplane", ".sqlite")


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext import",
        usage="deepcontext import [-o OUTPUT] FILE [FILE ...]",
        description="""\
Read a file that another profiler wrote into a profile: of torch.profiler (Kineto), Nsight
Systems (SQLite), rocprofv3, Proton, JAX (XPlane), or a sampler (pprof, speedscope, collapsed
stacks). The format is recognised by content. Other commands take such a file, too, where they take
a profile; import it to read a large file only once.""",
        epilog="""\
examples:
  deepcontext import trace.json.gz
  deepcontext report trace.json.gz
  deepcontext import -o before.dcprof trace.json.gz
  deepcontext diff before.dcprof after.json.gz
  deepcontext import --anonymise -o shared.dcprof train.dcprof

exit codes:
  0 done, 2 a file is missing, or the output would replace a file that is no profile, 5 a file is
  damaged or of an unknown format (profiles of the files before it are written)""",
    )
    parser.option(
        "file",
        nargs="+",
        metavar="FILE",
        help="file of another profiler, as it is or compressed with gzip",
    )
    parser.option(
        "-o",
        "--output",
        metavar="OUTPUT",
        help="profile to write, - for standard output (default: the file's name with .dcprof, in the "
        "current folder); only for a single file",
    )
    add_anonymise_option(parser)
    add_force_option(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    # Imported here, so that `deepcontext profile` starts the program without loading these modules.
    from deepcontext.profiler.importing.opening import load  # noqa: PLC0415
    from deepcontext.profiler.model.anonymous import anonymised  # noqa: PLC0415

    for name, output in _outputs(arguments):
        profile = load(name)
        if arguments.anonymise:
            profile = anonymised(profile)
        output.write(profile.to_bytes())
        if not output.is_stdout:
            print(_written(output.name, profile))
    return 0


def _outputs(arguments: argparse.Namespace) -> list[tuple[str, Output]]:
    """Return each file with where its profile goes, after checking that all can be written.

    Raises:
        UserError: an output cannot be written, or two files have one output.
    """
    names: Sequence[str] = arguments.file
    if arguments.output and len(names) > 1:
        raise UserError(
            f"cannot write {len(names)} profiles to '{arguments.output}'; leave out -o, or name one file"
        )
    outputs = [
        Output(arguments.output or _default(name), PROFILE, arguments.force) for name in names
    ]
    distinct = {output.name for output in outputs}
    if len(distinct) < len(outputs):
        raise UserError("two of the files have the same name; import them one by one with -o")
    for output in outputs:
        output.check(names)
    return list(zip(names, outputs, strict=True))


def _default(name: str) -> str:
    """Return ``trace.dcprof`` for ``somewhere/trace.json.gz``."""
    stem = Path(name).name.removesuffix(_COMPRESSED)
    for ending in _FORMATS:
        stem = stem.removesuffix(ending)
    return f"{stem or 'profile'}.dcprof"


def _written(name: str, profile: Profile) -> str:
    return f"written to '{name}', {len(profile.tree):,} nodes; next: deepcontext report {shlex.quote(name)}"
