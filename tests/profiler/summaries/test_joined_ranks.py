"""Ranks joined into one tree give the figures of the same ranks side by side."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.artifact import profile_of
from deepcontext.profiler.model.job.joining import join
from deepcontext.profiler.model.job.part import Part, part_of
from deepcontext.profiler.model.merging import merge
from deepcontext.profiler.summaries import joined_ranks
from deepcontext.profiler.summaries import ranks as rank_summary
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


def test_ranks_and_lines_are_those_of_ranks_side_by_side(ranks: list[Profile]) -> None:
    side_by_side = merge({str(rank): profile for rank, profile in enumerate(ranks)})
    joined = profile_of(_job(ranks))
    assert rank_summary.by_rank(joined) == rank_summary.by_rank(side_by_side)
    expected = {
        (line.file, line.line): line.by_rank
        for line in rank_summary.uneven_lines(side_by_side, 1000)
    }
    found = {
        (line.file, line.line): line.by_rank for line in rank_summary.uneven_lines(joined, 1000)
    }
    largest = [line for line in expected if max(expected[line]) > 10**6]
    assert largest
    # Values are differences of inclusive values, each accurate to 0.04 %.
    within = 1e-3 * int(joined.inclusive("host_time_ns")[0])
    for line in largest:
        np.testing.assert_allclose(found[line], expected[line], atol=within)
    assert rank_summary.rank_nodes(joined) == ()


def test_unknown_values_are_the_mean_and_never_called_slow(ranks: list[Profile]) -> None:
    whole = _job(ranks)
    first, rest = _job(ranks[:1]), _job(ranks[1:])
    user = np.flatnonzero(first.paths.parent != 0)
    kept = first.columns.only(first.columns.key[user[::2]])
    cut = join([dataclasses.replace(first, columns=kept), rest])
    assert np.isnan(_decoded(cut)).any()
    table = joined_ranks.line_table(profile_of(cut)).values
    complete = joined_ranks.line_table(profile_of(whole)).values
    np.testing.assert_allclose(table[:, 1:], complete[:, 1:])
    assert (table[:, 0].sum() > 0.5 * table[:, 1:].sum(axis=0)).all()


def _decoded(part: Part) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    from deepcontext.profiler.model.job.columns import decode

    return decode(sections.columns_of(profile_of(part)).columns.codes["host_time_ns"])


def test_the_slowest_rank_has_the_most_work(ranks: list[Profile]) -> None:
    rows = joined_ranks.rows(profile_of(_job(ranks)))
    ordered = joined_ranks.slowest(rows)
    assert [row.operator_ns for row in ordered] == sorted(
        (row.operator_ns for row in rows), reverse=True
    )
    assert joined_ranks.rows(ranks[0]) == ()
