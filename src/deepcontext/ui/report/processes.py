"""The report's section about the processes of a job: role, share of the work and end of each process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from deepcontext.profiler.summaries.processes import processes_of
from deepcontext.ui.format import format_share
from deepcontext.ui.process_texts import ends_text
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.report.text_layout import TextLayout
from deepcontext.ui.sections import jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.roles import Role


def print_processes(profiles: Sequence[Profile], *, console: Console) -> None:
    """Print a row for each process, children below their parent, and a blank line."""
    layout = TextLayout(console)
    processes = processes_of(profiles)
    print_table(layout, jobs.processes(profiles))
    for profile in profiles:
        _tell_missed(profile, layout)
    for table in (*jobs.loaders(processes), jobs.waits(processes)):
        print_table(layout, table)
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
