"""What the launcher tells the program's interpreter, through one environment variable.

Does not read or change the environment itself (`command.py` writes it, `path/sitecustomize.py`
removes it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.recording.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "DEEPCONTEXT_LAUNCH"


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The session of a launched program, and what happens at its end.

    Attributes:
        output: absolute path of the profile file.
        label: the same path as the user typed it, for messages.
        session: what is recorded.
        script: the program as the user typed it, without its arguments.
        report: whether a short report is printed when the program ends.
        quiet: whether nothing but a failure of the profiler is printed.
        strict: whether a successful program exits with an error when its profile has an error.
        force: whether the output file is replaced even if it is not a profile.
        import_folder: what the interpreter will put first on `sys.path`.
        children: which children are recorded: "none", "frameworks" or "all".
        run: absolute path of the run directory, if children are recorded; "" if not.
        job: absolute path of the run directory that all ranks of a job write, "" outside such a job.
        ranks: which ranks are recorded, as in ``0,8-15``; "" for all.
        run_label: the same path as the user would type it, for messages.
        is_kept: whether the profile stays at `output` even if children were recorded.
        timings: path of a JSON file for the durations of start and stop, or "" for none.
    """

    output: str
    label: str
    session: SessionOptions = field(default_factory=SessionOptions)
    script: str = ""
    report: bool = True
    quiet: bool = False
    strict: bool = False
    force: bool = False
    import_folder: str = ""
    children: str = "none"
    run: str = ""
    job: str = ""
    ranks: str = ""
    run_label: str = ""
    is_kept: bool = False
    timings: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> LaunchOptions:
        """Build the options from their fields, as read from JSON."""
        return cls(**{**fields, "session": SessionOptions.of(fields["session"])})
