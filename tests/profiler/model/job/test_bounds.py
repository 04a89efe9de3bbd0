"""Rare cheap paths fold into their parent with their cost; values of few paths are kept."""

from __future__ import annotations

import dataclasses

import numpy as np

from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.artifact import profile_of
from deepcontext.profiler.model.job.bounds import bounded, fold_rare, largest_paths
from deepcontext.profiler.model.job.columns import UNKNOWN
from deepcontext.profiler.model.job.joining import join
from deepcontext.profiler.model.job.part import Part, part_of
from tests.profiler.model.job.conftest import Made

RANKS = 200


def _job(rare_ns: int) -> Part:
    """Return a job whose last rank has two nested paths of its own below a path of all."""
    parts = []
    for rank in range(RANKS):
        rows = [(0, 0, 0), (0, 1, 0), (1, 2, 0)]
        values = {1: 10**7, 2: 10**7}
        if rank == RANKS - 1:
            rows += [(2, 3, 0), (3, 4, 0)]
            values |= {3: rare_ns, 4: rare_ns}
        made = Made(rank, tuple(rows), (values, {}, {2: 50, 4: 70} if len(rows) > 3 else {2: 50}))
        parts.append(part_of(made.profile(), rank))
    return join(parts)


def test_rare_cheap_paths_give_their_cost_to_their_parent() -> None:
    job = _job(rare_ns=100)
    before, after = profile_of(job), profile_of(fold_rare(job))
    assert (len(before.tree), len(after.tree)) == (5, 3)
    for metric in ("host_time_ns", "peak_bytes"):
        assert after.inclusive(metric).tolist() == before.inclusive(metric)[:3].tolist()
    rows, whole = after.metrics["host_time_ns"], before.metrics["host_time_ns"]
    assert int(rows.total[-1]) == RANKS * 10**7 + 200
    assert int(rows.count.sum()) == int(whole.count.sum())
    spread = sections.spreads_of(after)["host_time_ns"]
    assert spread.most_rank.tolist() == [RANKS - 1] * 3
    assert len(after.frames) == 3


def test_rare_paths_that_cost_something_are_kept() -> None:
    assert len(fold_rare(_job(rare_ns=10**5)).paths) == 5


def test_values_that_were_not_kept_are_unknown() -> None:
    first, second = (
        part_of(
            Made(rank, ((0, 0, 0), (0, 1, 0), (1, 2, 0)), ({1: 5, 2: 3}, {}, {})).profile(), rank
        )
        for rank in range(2)
    )
    assert largest_paths(first, 2).tolist() == sorted(largest_paths(first, 2).tolist())
    cut = dataclasses.replace(first, columns=first.columns.only(largest_paths(first, 1)))
    codes = join([cut, second]).columns.codes[HOST_TIME_NS.name]
    assert np.count_nonzero(codes == UNKNOWN) == 2
    third = part_of(Made(2, ((0, 0, 0),), ({}, {}, {})).profile(), 2)
    # A rank whose every path is known has the value 0 elsewhere.
    assert join([first, third]).columns.codes[HOST_TIME_NS.name][:, 1].tolist() == [0, 0, 0]
    assert bounded(first).columns.is_whole.all()
