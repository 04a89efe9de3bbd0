"""Which recorded process of a run directory started another one.

Does not read files. Invariant: a parent began before its child, so that the processes are a forest
although a system uses process numbers again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.run_info import RunInfo


def parents_of(runs: Sequence[RunInfo]) -> list[int | None]:
    """Return for each process the place of its parent among them, None for a parent without a profile.

    Of several processes with the parent's number, the last one that had begun is the parent. Of processes
    that began at the same time, the first one in the list began first.
    """
    begun: dict[tuple[str, int], int] = {}
    parents: list[int | None] = [None] * len(runs)
    for n in sorted(range(len(runs)), key=lambda each: runs[each].start_unix_ns):
        run = runs[n]
        # Number 0 is an unknown process.
        parents[n] = begun.get((run.hostname, run.parent_pid)) if run.parent_pid else None
        begun[run.hostname, run.pid] = n
    return parents
