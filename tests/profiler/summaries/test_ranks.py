"""The ranks of a merged profile have the figures of their own profiles."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.elapsed import in_operators
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.artifact import profile_of
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.job.joining import join
from deepcontext.profiler.model.job.part import Part, part_of
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.summaries.lines import UserLines
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

RANKS = 6


@pytest.fixture(scope="module")
def ranks() -> list[Profile]:
    """Return ranks whose costs differ by path."""
    made, found = random_profile(400, seed=7), []
    is_python = made.frames.kind[made.tree.frame] == FrameKind.PYTHON
    assert is_python.any()
    for rank in range(RANKS):
        random = np.random.default_rng(rank)
        rows = {
            name: dataclasses.replace(
                each, total=(each.total * random.uniform(0.5, 1.5, len(each.total))).astype(int)
            )
            for name, each in made.stored_metrics().items()
        }
        run = dataclasses.replace(made.run, rank=rank, ranks=RANKS, pid=10 + rank)
        found.append(dataclasses.replace(made, metrics=rows, run=run))
    return found


def _job(ranks: list[Profile]) -> Part:
    return join([part_of(profile, profile.run.rank) for profile in ranks])


def test_ranks_and_lines_are_those_of_each_rank(ranks: list[Profile]) -> None:
    job = merge({str(rank): profile for rank, profile in enumerate(ranks)})
    for row, profile in zip(rank_summary.by_rank(job), ranks, strict=True):
        assert row.operator_ns == int(
            in_operators(profile.frames, profile.tree, profile.metrics).sum()
        )
    expected: dict[tuple[str, int], list[int]] = {}
    for rank, profile in enumerate(ranks):
        lines = UserLines.of(profile)
        sums = lines.sums(exclusive_or_zeros(profile, rank_summary.line_metric(job)))
        for frame, value in zip(lines.frame.tolist(), sums.tolist(), strict=True):
            at = profile.frames[frame]
            expected.setdefault((at.file, at.line), [0] * RANKS)[rank] += value
    found = {(line.file, line.line): line.by_rank for line in rank_summary.uneven_lines(job, 1000)}
    largest = [line for line in expected if max(expected[line]) > 10**6]
    assert largest
    # Values are differences of inclusive values, each accurate to 0.04 %.
    within = 1e-3 * int(job.inclusive("host_time_ns")[0])
    for line in largest:
        np.testing.assert_allclose(found[line], expected[line], atol=within)


def test_few_ranks_keep_the_values_of_every_path_with_a_cost(ranks: list[Profile]) -> None:
    job = merge({str(rank): profile for rank, profile in enumerate(ranks)})
    values = rank_summary.own_values(job, "host_time_ns")
    exact = np.stack([profile.inclusive("host_time_ns")[:1] for profile in ranks])
    np.testing.assert_allclose(values.sum(axis=0), exact[:, 0], rtol=1e-3)
    with_cost = np.flatnonzero(job.inclusive("host_time_ns"))
    assert np.isin(with_cost, rank_summary.largest_nodes(job)).all()


def test_unknown_values_are_the_mean_and_never_called_slow(ranks: list[Profile]) -> None:
    whole = _job(ranks)
    first, rest = _job(ranks[:1]), _job(ranks[1:])
    user = np.flatnonzero(first.paths.parent != 0)
    kept = first.columns.only(first.columns.key[user[::2]])
    cut = join([dataclasses.replace(first, columns=kept), rest])
    assert np.isnan(_decoded(cut)).any()
    table, complete = (
        rank_summary.by_line(job, rank_summary.own_values(job, rank_summary.line_metric(job)))
        for job in map(profile_of, (cut, whole))
    )
    np.testing.assert_allclose(table[:, 1:], complete[:, 1:])
    assert (table[:, 0].sum() > 0.5 * table[:, 1:].sum(axis=0)).all()


def _decoded(part: Part) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    from deepcontext.profiler.model.job.columns import decode

    return decode(sections.columns_of(profile_of(part)).columns.codes["host_time_ns"])


def test_the_slowest_rank_has_the_most_work(ranks: list[Profile]) -> None:
    rows = rank_summary.by_rank(profile_of(_job(ranks)))
    ordered = rank_summary.slowest(rows)
    assert [row.operator_ns for row in ordered] == sorted(
        (row.operator_ns for row in rows), reverse=True
    )
    assert rank_summary.by_rank(ranks[0]) == ()
