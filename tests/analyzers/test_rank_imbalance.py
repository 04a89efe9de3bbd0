"""Only processes of one program with common collectives are compared."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SECOND = 1_000_000_000


def process(
    make_profile: MakeProfile, rank: int, seconds: int, *, script: str = "serve", meets: bool = True
) -> Profile:
    """Return a process of 20 s that spends `seconds` of them in its line 7."""
    file = f"/home/me/{script}.py"
    made: Profile = make_profile(
        [0, 0, 1, 2, 2],
        [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.THREAD, "MainThread"),
            Frame(FrameKind.PYTHON, "<module>", file, 20),
            Frame(FrameKind.PYTHON, "work", file, 7),
            Frame(FrameKind.OPERATOR, "c10d::allreduce_" if meets else "aten::mm"),
        ],
        host_time_ns={4: SECOND},
        run=RunInfo(wall_ns=20 * SECOND, rank=rank, ranks=4),
    )
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        np.array([3], np.uint32),
        np.array([1], np.uint64),
        np.array([seconds * SECOND], np.int64),
    )
    return dataclasses.replace(made, metrics={**made.metrics, SAMPLED_CPU_TIME_NS.name: rows})


def compared(*processes: Profile) -> list[tuple[object, object]]:
    """Return slow rank and number of ranks of each finding about the merged profile."""
    job = merge({f"rank{number}": each for number, each in enumerate(processes)})
    found = run_analyzers(job, only=["rank_imbalance"])
    return [(finding.evidence["rank"], finding.evidence["ranks"]) for finding in found]


def test_what_the_slow_rank_does_is_named(make_profile: MakeProfile) -> None:
    job = merge({str(rank): process(make_profile, rank, 1 + 8 * rank) for rank in range(2)})
    (finding,) = run_analyzers(job, only=["rank_imbalance"])
    assert ", running Python at /home/me/serve.py:7 (work)" in finding.title


def test_ranks_of_one_program_are_compared(make_profile: MakeProfile) -> None:
    assert compared(process(make_profile, 0, 1), process(make_profile, 1, 9)) == [(1, 2)]


def test_processes_without_common_collectives_are_not_compared(make_profile: MakeProfile) -> None:
    frontend = process(make_profile, 0, 1, meets=False)
    assert compared(frontend, process(make_profile, 1, 9, meets=False)) == []


@pytest.mark.parametrize("meets", [False, True])
def test_other_programs_are_left_out(make_profile: MakeProfile, *, meets: bool) -> None:
    """The frontend of a server waits most, and is not a rank of the workers."""
    frontend = process(make_profile, 0, 18, script="frontend", meets=meets)
    workers = [process(make_profile, rank, 1) for rank in (1, 2)]
    assert compared(frontend, *workers) == []
    slow = process(make_profile, 3, 9)
    assert compared(frontend, *workers, slow) == [(3, 3)]
