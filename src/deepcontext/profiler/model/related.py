"""Whether profiles that a user names one by one belong to processes of one job.

The decision uses parents and start times of processes; `one_job.py` decides what may be merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.errors import UserError
from deepcontext.profiler.model.one_job import check_one_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.run_info import RunInfo


def are_related(runs: Sequence[RunInfo]) -> bool:
    """Return whether processes were started by one another, or are ranks of one job.

    Two runs of one program are not related: a user compares them.
    """
    known = {(run.hostname, run.pid) for run in runs if run.pid}
    orphans = [run for run in runs if (run.hostname, run.parent_pid) not in known]
    if len(known) < len(runs) or len(known) < 2:  # noqa: PLR2004  one process is no job
        return False
    return len(orphans) <= 1 or _are_ranks(orphans) or _are_siblings(orphans)


def _are_ranks(runs: Sequence[RunInfo]) -> bool:
    if not all(run.ranks for run in runs) or len({run.rank for run in runs}) < len(runs):
        return False
    try:
        check_one_job({str(number): run for number, run in enumerate(runs)})
    except UserError:
        return False
    return True


def _are_siblings(runs: Sequence[RunInfo]) -> bool:
    """Return whether one process started all of them, and all ran at the same time."""
    if len({(run.hostname, run.parent_pid) for run in runs}) > 1 or not runs[0].parent_pid:
        return False
    return max(run.start_unix_ns for run in runs) < min(
        run.start_unix_ns + run.wall_ns for run in runs
    )
