"""The report's section about the processes of a run: program, duration and end of each process."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.operators import operator_time
from deepcontext.ui.format import Elide, format_ns
from deepcontext.ui.report.text_layout import Column, TextLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo

_ENDS: Final = {"exit": "", "snapshot": "running or killed"}


def print_processes(profiles: Sequence[Profile], *, console: Console) -> None:
    """Print a row for each process, ordered by start, and a blank line."""
    layout = TextLayout(console)
    layout.title(f"Processes ({len(profiles)})", "in the order in which they began to record")
    layout.table(
        (
            Column("process"),
            Column("parent", rank=2),
            Column("elapsed"),
            Column("processor"),
            Column("operators", rank=1),
            Column("ended", rank=3),
            Column("program", Elide.MIDDLE),
        ),
        [_row(profile) for profile in profiles],
    )
    for profile in profiles:
        _tell_missed(profile, layout)
    layout.line()


def _tell_missed(profile: Profile, layout: TextLayout) -> None:
    missed = profile.trust.counters.get("missed_children", 0)
    if missed:
        layout.prose(
            f"{missed} {'children' if missed > 1 else 'child'} that use{'s' * (missed == 1)} torch or jax "
            f"{'have' if missed > 1 else 'has'} no profile (process {profile.run.pid}); its trust report "
            "says why"
        )


def _row(profile: Profile) -> tuple[str, ...]:
    run = profile.run
    spent = operator_time(profile)
    return (
        str(run.pid),
        str(run.parent_pid or "-"),
        format_ns(run.wall_ns),
        format_ns(run.cpu_user_ns + run.cpu_system_ns),
        format_ns(spent) if spent else "-",
        _ENDS.get(run.exit_reason, run.exit_reason),
        _program(run),
    )


def _program(run: RunInfo) -> str:
    command = shlex.join([
        PurePath(word).name if not n else word for n, word in enumerate(run.command)
    ])
    text = run.process_name or command
    return f"rank {run.rank}: {text}" if run.ranks else text
