"""The report's section about the processes of a job: role, share of the work and end of each process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.loader_workers import loader_times
from deepcontext.profiler.summaries.process_waits import process_waits
from deepcontext.profiler.summaries.processes import processes_of, shortened
from deepcontext.ui.format import Elide, elide, format_ns, format_share
from deepcontext.ui.process_texts import ends_text, role_text
from deepcontext.ui.report.loaders import print_loaders
from deepcontext.ui.report.text_layout import Column, TextLayout
from deepcontext.ui.report.waits import print_waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.processes import Folded, Process
    from deepcontext.profiler.summaries.roles import Role

_MOST_ROWS: Final = 12
_LONGEST_END: Final = 32


def print_processes(profiles: Sequence[Profile], *, console: Console) -> None:
    """Print a row for each process, children below their parent, and a blank line."""
    layout = TextLayout(console)
    processes = processes_of(profiles)
    shown, folded = shortened(processes, _MOST_ROWS)
    ends = any(each.ended for each in processes)
    lacking = any(each.end.uncovered_ns for each in processes)
    hosts = len({profile.run.hostname for profile in profiles}) > 1
    layout.title(
        f"Processes ({len(profiles)})", "children below their parent, share of processor time"
    )
    layout.table(
        (
            Column("process"),
            Column("role", Elide.END),
            *([Column("host", Elide.END, rank=4)] if hosts else []),
            Column("elapsed", rank=2),
            Column("processor", rank=3),
            Column("share"),
            *([Column("ended", rank=1)] if ends else []),
            *([Column("not covered", rank=5)] if lacking else []),
            Column("program", Elide.MIDDLE),
        ),
        [
            *(_row(layout, each, hosts=hosts, ends=ends, lacking=lacking) for each in shown),
            *(_folded_row(each, hosts=hosts, ends=ends, lacking=lacking) for each in folded),
        ],
    )
    for profile in profiles:
        _tell_missed(profile, layout)
    print_loaders(layout, loader_times(processes), profiles[0].run.cwd)
    print_waits(layout, process_waits(processes), profiles[0].run.cwd)
    layout.line()


def print_process_summary(profiles: Sequence[Profile], *, console: Console) -> None:
    """Print one sentence about the processes of a job."""
    processes = processes_of(profiles)
    shares: dict[Role, list[float]] = {}
    for each in processes:
        shares.setdefault(each.role, []).append(each.share)
    texts = [
        f"{role.value if len(of_role) == 1 else f'{len(of_role)} {role.plural}'} "
        f"({format_share(sum(of_role))})"
        for role, of_role in shares.items()
    ]
    ends = Counter(each.ended for each in processes if each.ended)
    told = f"; ended: {ends_text(ends)}" if ends else ""
    layout = TextLayout(console)
    layout.prose(
        f"{len(processes)} processes, with their share of processor time: {', '.join(texts)}{told}",
        indent="",
    )


def _tell_missed(profile: Profile, layout: TextLayout) -> None:
    missed = profile.trust.counters.get("missed_children", 0)
    if missed:
        layout.prose(
            f"{missed} {'children' if missed > 1 else 'child'} that use{'s' * (missed == 1)} torch or jax "
            f"{'have' if missed > 1 else 'has'} no profile (process {profile.run.pid}); its trust report "
            "says why"
        )


def _row(
    layout: TextLayout, process: Process, *, hosts: bool, ends: bool, lacking: bool
) -> tuple[str, ...]:
    run = process.profile.run
    uncovered_ns = process.end.uncovered_ns
    return (
        str(run.pid),
        "  " * process.depth + role_text(process),
        *([run.hostname] if hosts else []),
        format_ns(run.wall_ns),
        format_ns(process.cpu_ns),
        format_share(process.share),
        *([elide(process.ended, _LONGEST_END, layout.glyphs, Elide.END)] if ends else []),
        *([f"up to {format_ns(uncovered_ns)}" if uncovered_ns else ""] if lacking else []),
        process.program,
    )


def _folded_row(folded: Folded, *, hosts: bool, ends: bool, lacking: bool) -> tuple[str, ...]:
    return (
        "",
        f"{folded.count} more {folded.role.value if folded.count == 1 else folded.role.plural}",
        *([""] if hosts else []),
        "",
        format_ns(folded.cpu_ns),
        format_share(folded.share),
        *([ends_text(folded.ends)] if ends else []),
        *([""] if lacking else []),
        "",
    )
