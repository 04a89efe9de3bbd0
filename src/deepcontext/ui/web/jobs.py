"""The processes of a job as the page shows them, with the profile that each row opens."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.job.rank_row import rank_row
from deepcontext.profiler.summaries.similar_processes import similar_processes
from deepcontext.ui.process_texts import count_text, ends_text, role_text
from deepcontext.ui.web.answers import JobAnswer, ProcessGroup, ProcessRow, RoleRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.summaries.processes import Process
    from deepcontext.profiler.summaries.similar_processes import SimilarProcesses

# Fewer siblings are listed one by one.
_FEWEST_FOLDED: Final = 6
_MOST_WARNINGS: Final = 5
_NONE: Final = -1


def job_answer(
    name: str,
    processes: Sequence[Process],
    files: Sequence[int],
    roles: Sequence[RoleRow],
    notes: Sequence[str],
) -> JobAnswer:
    """Return the processes of a job for the page.

    Args:
        name: name of the job.
        processes: what `processes_of` returned.
        files: for each process the index of its profile.
        roles: rows for the whole job, then for its roles.
        notes: what a reader must know about the job as a whole.
    """
    groups = similar_processes(processes, _FEWEST_FOLDED)
    group_of = {member: n for n, group in enumerate(groups) for member in group.members}
    return JobAnswer(
        name=name,
        roles=list(roles),
        groups=[_group(each, processes) for each in groups],
        processes=[
            _row(process, file, group_of.get(n, _NONE))
            for n, (process, file) in enumerate(zip(processes, files, strict=True))
        ],
        notes=list(notes),
    )


def renumbered(job: JobAnswer, files: Mapping[int, int]) -> JobAnswer:
    """Return a job whose profiles have other indices; profiles without a new index cannot be opened."""

    def moved(file: int) -> int:
        return files.get(file, _NONE)

    return dataclasses.replace(
        job,
        roles=[dataclasses.replace(each, file=moved(each.file)) for each in job.roles],
        processes=[dataclasses.replace(each, file=moved(each.file)) for each in job.processes],
    )


def _row(process: Process, file: int, group: int) -> ProcessRow:
    run = process.profile.run
    known = rank_row(process.profile, 0, {}, name="", content="")
    warnings = process.profile.trust.warnings
    left = len(warnings) - _MOST_WARNINGS
    uncovered_ns = process.end.uncovered_ns
    return ProcessRow(
        file=file,
        name=role_text(process),
        pid=run.pid,
        depth=process.depth,
        group=group,
        rank=_NONE if process.rank is None else process.rank,
        host=run.hostname,
        program=process.program,
        wall_ns=run.wall_ns,
        cpu_ns=process.cpu_ns,
        operator_ns=known.operator_ns,
        running_ns=known.running_ns,
        waiting_ns=known.waiting_ns,
        ended=process.ended,
        uncovered_ns=_NONE if uncovered_ns is None else uncovered_ns,
        warnings=[*warnings[:_MOST_WARNINGS], *([f"and {left} more"] if left > 0 else [])],
    )


def _group(group: SimilarProcesses, processes: Sequence[Process]) -> ProcessGroup:
    return ProcessGroup(
        name=count_text(group.role, len(group.members)),
        cpu_ns=sum(processes[member].cpu_ns for member in group.members),
        busiest=group.busiest,
        typical=group.typical,
        bins=list(group.bins),
        ended=ends_text(group.ends),
    )
