"""Joined ranks against plain Python: sums, spread, values of each rank, and any order of joining."""

from __future__ import annotations

import dataclasses
import math
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepcontext.errors import ProfileDataError, UserError
from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.format.source_text import FileText
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.artifact import profile_of, read_part
from deepcontext.profiler.model.job.columns import decode
from deepcontext.profiler.model.job.joining import join
from deepcontext.profiler.model.job.part import part_of
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.source import held_text
from tests.profiler.model.job.conftest import FRAMES, METRICS, PEAK, Made, made_ranks

if TYPE_CHECKING:
    from deepcontext.profiler.model.job.part import Part

    Path = tuple[tuple[int, int], ...]


def _part(made: Made) -> Part:
    # The source text of each rank differs, and one file has frames in no profile.
    files = {
        FRAMES[2].file: FileText(9, {3: f"main({made.rank % 2})", 5 + made.rank % 4: "pass"}),
        f"/rank{made.rank}/other.py": FileText(1, {1: "pass"}),
    }
    profile = made.profile().with_section(source_text.SECTION, source_text.encode(files))
    return part_of(profile, made.rank, name=f"rank{made.rank}")


def _paths(profile: Profile) -> dict[Path, int]:
    """Return the node of each path, as numbers of frames and phases."""
    numbers = {frame: number for number, frame in enumerate(FRAMES)}
    found = {}
    for node in range(len(profile.tree)):
        nodes = profile.tree.path(node)
        path = tuple((numbers[profile.frame(n)], int(profile.tree.phase[n])) for n in nodes)
        assert path not in found
        found[path] = node
    return found


def _expected(ranks: list[Made], metric: int) -> tuple[dict[Path, list[int]], dict[Path, Any]]:
    """Return the exclusive values at each path, and inclusive values by rank at each path."""
    exclusive: dict[Path, list[int]] = defaultdict(list)
    inclusive: dict[Path, Any] = defaultdict(lambda: defaultdict(int))
    for made in ranks:
        for node, value in made.values[metric].items():
            path = made.path(node)
            exclusive[path].append(value)
            for length in range(1, len(path) + 1):
                inclusive[path[:length]][made.rank] += value
    return exclusive, inclusive


@settings(max_examples=60)
@given(made_ranks())
def test_a_joined_tree_equals_plain_python(ranks: list[Made]) -> None:
    job = Profile.from_bytes(profile_of(join([_part(made) for made in ranks])).to_bytes())
    nodes = _paths(job)
    assert set(nodes) == {made.path(node) for made in ranks for node in range(len(made.rows))}
    spreads, values = sections.spreads_of(job), sections.columns_of(job)
    for number, descriptor in enumerate(METRICS):
        exclusive, inclusive = _expected(ranks, number)
        rows = job.stored_metrics().get(descriptor.name)
        found = {} if rows is None else dict(zip(rows.node.tolist(), rows.total, strict=True))
        assert found == {nodes[path]: sum(each) for path, each in exclusive.items()}
        if rows is None:
            continue
        if descriptor is PEAK:
            assert rows.maximum is not None
            most = dict(zip(rows.node.tolist(), rows.maximum.tolist(), strict=True))
            assert most == {nodes[path]: max(each) for path, each in exclusive.items()}
            continue
        spread = spreads[descriptor.name]
        assert set(spread.node.tolist()) == {nodes[path] for path in inclusive}
        mean, deviation = spread.mean(len(ranks)), spread.deviation(len(ranks))
        by_node = {nodes[path]: dict(by_rank) for path, by_rank in inclusive.items()}
        for row, node in enumerate(spread.node.tolist()):
            by_rank = by_node[node]
            of_all = [by_rank.get(made.rank, 0) for made in ranks]
            assert spread.ranks[row] == len(by_rank)
            assert spread.total[row] == sum(of_all)
            squares = (int(spread.squares_high[row]) << 64) + int(spread.squares_low[row])
            assert squares == sum(value**2 for value in of_all)
            assert math.isclose(mean[row], np.mean(of_all))
            assert math.isclose(deviation[row], np.std(of_all), abs_tol=1e-6 * max(of_all))
            least, most_ = min(by_rank.values()), max(by_rank.values())
            assert (spread.least[row], spread.most[row]) == (least, most_)
            assert spread.least_rank[row] == min(r for r, v in by_rank.items() if v == least)
            assert spread.most_rank[row] == min(r for r, v in by_rank.items() if v == most_)
        table = decode(values.columns.codes[descriptor.name])
        expected = [
            [by_node.get(node, {}).get(rank, 0) for rank in values.columns.rank.tolist()]
            for node in values.node.tolist()
        ]
        np.testing.assert_allclose(table, expected, rtol=4e-4)


@settings(max_examples=60)
@given(made_ranks(), st.integers(0, 2**32))
def test_any_order_and_grouping_gives_the_same_bytes(ranks: list[Made], seed: int) -> None:
    parts = [_part(made) for made in ranks]
    expected = profile_of(join(parts)).to_bytes()
    choose = random.Random(seed)
    while len(parts) > 1:
        choose.shuffle(parts)
        taken = choose.randint(2, len(parts))
        joined = join(parts[:taken])
        if choose.random() < 0.5:
            written = profile_of(joined).to_bytes()
            joined = read_part(Profile.from_bytes(written))
            assert profile_of(joined).to_bytes() == written
        parts = [joined, *parts[taken:]]
    assert profile_of(parts[0]).to_bytes() == expected


def test_two_paths_of_one_key_are_an_error() -> None:
    made = Made(0, ((0, 0, 0), (0, 1, 0)), ({1: 5}, {}, {}))
    part = _part(made)
    (key,) = set(part.paths.frame[part.paths.parent != 0].tolist())
    frames = {**part.frames, key: dataclasses.replace(part.frames[key], name="another")}
    other = _part(dataclasses.replace(made, rank=1))
    with pytest.raises(ProfileDataError, match=r"two different call paths have the key 0x"):
        join([dataclasses.replace(part, frames=frames), other])
    paths = dataclasses.replace(part.paths, phase=part.paths.phase + np.uint8(1))
    with pytest.raises(ProfileDataError, match=r"two different call paths have the key 0x"):
        join([dataclasses.replace(part, paths=paths), other])


def test_one_rank_twice_is_an_error() -> None:
    made = Made(3, ((0, 0, 0),), ({}, {}, {}))
    with pytest.raises(UserError, match=r"'rank3' and 'again' both belong to rank 3"):
        join([_part(made), part_of(made.profile(), 3, name="again")])
    same = part_of(made.profile(), 4, name="copy", content="ab")
    with pytest.raises(UserError, match=r"'copy' and 'a' are the same profile"):
        join([same, part_of(made.profile(), 3, name="a", content="ab")])


def test_the_spread_of_single_calls_is_that_of_all_ranks() -> None:
    """Counts, extremes and the sum of squares about the mean of calls of several ranks."""
    made = Made(0, ((0, 0, 0), (0, 4, 0)), ({}, {}, {}))
    calls = {0: [5, 7, 9], 1: [100], 2: [6, 6]}
    parts = []
    for rank, values in calls.items():
        rows = MetricRows(
            CALL_DURATION_NS,
            np.array([1], np.uint32),
            np.array([len(values)], np.uint64),
            np.array([sum(values)], np.int64),
            np.array([min(values)], np.int64),
            np.array([max(values)], np.int64),
            np.array([len(values) * np.var(values)]),
        )
        profile = dataclasses.replace(made.profile(), metrics={CALL_DURATION_NS.name: rows})
        parts.append(part_of(profile, rank))
    row = profile_of(join(parts)).metrics[CALL_DURATION_NS.name].row(0)
    every = [value for values in calls.values() for value in values]
    assert (row["count"], row["total"]) == (len(every), sum(every))
    assert (row["minimum"], row["maximum"]) == (5, 100)
    assert math.isclose(row["m2"], len(every) * np.var(every))


def test_the_source_text_of_a_job_is_that_of_all_ranks() -> None:
    made = [Made(rank, ((0, 0, 0),), ({}, {}, {})) for rank in range(3)]
    without = part_of(made[2].profile(), 2)
    job = profile_of(join([_part(made[0]), without, _part(made[1])]))
    assert held_text(job) == {FRAMES[2].file: FileText(9, {3: "main(0)", 5: "pass", 6: "pass"})}


def test_run_and_trust_are_of_the_whole_job() -> None:
    parts = [_part(Made(rank, ((0, 0, 0),), ({}, {}, {}))) for rank in range(8)]
    job = profile_of(join(parts), notes=["a note"])
    assert (job.run.wall_ns, job.run.ranks, job.run.rank) == (80, 8, -1)
    assert job.run.hostname == "n0, n1, n2 and 1 other hosts"
    assert job.trust.counters == {"events": 28}
    assert job.trust.hook_cost_ns_per_event == 100.5
    assert job.trust.notes == (
        "a note",
        "8 of the job's 9 ranks are in this profile",
        "ranks 1, 3, 5, 7: some rank is slow",
    )
    (torch,) = job.trust.collectors
    assert (torch.status, torch.details) == ("ran", {"torch": "2.13.0"})
    rows = sections.rows_of(job)
    assert [(row.rank, row.name, row.hostname) for row in rows[:2]] == [
        (0, "rank0", "n0"),
        (1, "rank1", "n0"),
    ]
