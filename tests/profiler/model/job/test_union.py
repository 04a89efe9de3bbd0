"""Processes of a job as one tree: the sums are those of merging them, and no path occurs twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS, Aggregation
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.job.union import united
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import TrustReport
from tests.profiler.model.job.conftest import FRAMES, METRICS, PEAK, made_ranks

if TYPE_CHECKING:
    from tests.conftest import MakeProfile
    from tests.profiler.model.job.conftest import Made


def _paths(profile: Profile) -> list[tuple[tuple[int, int], ...]]:
    numbers = {frame: number for number, frame in enumerate(FRAMES)}
    return [
        tuple(
            (numbers[profile.frame(each)], int(profile.tree.phase[each]))
            for each in profile.tree.path(node)
        )
        for node in range(len(profile.tree))
    ]


@settings(max_examples=60)
@given(made_ranks())
def test_a_union_has_each_path_once_and_the_values_of_all(made: list[Made]) -> None:
    profiles = [each.profile() for each in made]
    union = Profile.from_bytes(united(profiles).to_bytes())
    paths = _paths(union)
    assert len(set(paths)) == len(paths)
    assert set(paths) == {each.path(node) for each in made for node in range(len(each.rows))}
    for number, descriptor in enumerate(METRICS):
        expected: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for each in made:
            for node, value in each.values[number].items():
                expected.setdefault(each.path(node), []).append(value)
        if not expected:
            assert descriptor.name not in union.metrics
            continue
        join = max if descriptor is PEAK else sum
        values = union.exclusive(descriptor.name).tolist()
        found = {path: value for path, value in zip(paths, values, strict=True) if value}
        assert found == {path: join(each) for path, each in expected.items()}


@settings(max_examples=20)
@given(made_ranks())
def test_a_union_has_the_sums_of_a_merged_profile(made: list[Made]) -> None:
    profiles = {str(each.rank): each.profile() for each in made}
    if len(profiles) == 1:
        return
    union, merged = united(list(profiles.values())), merge(profiles, unrelated=True)
    for name, rows in merged.stored_metrics().items():
        if rows.descriptor.aggregation is Aggregation.SUM:
            assert union.inclusive(name)[0] == merged.inclusive(name)[0]
    assert (union.run.wall_ns, union.run.ranks) == (merged.run.wall_ns, 0)


def test_siblings_are_in_the_order_of_the_first_process(make_profile: MakeProfile) -> None:
    names = ["b", "c", "a"]
    first, second = (
        make_profile(
            [0, 0, 0, 0],
            [FRAMES[0], *(Frame(FrameKind.OPERATOR, name) for name in order)],
            host_time_ns={1: 1, 2: 2, 3: 3},
            run=RunInfo(pid=pid),
            trust=TrustReport((), {"events": 1}, None, (note,)),
        )
        for pid, order, note in ((7, names, "late"), (8, ["d", *reversed(names[1:])], "early"))
    )
    union = united([first, second])
    assert [union.frame(node).name for node in union.tree.children(0)] == [*names, "d"]
    assert union.exclusive(HOST_TIME_NS.name).tolist() == [0, 1, 2 + 3, 3 + 2, 1]
    assert union.trust.counters == {"events": 2}
    assert union.trust.notes == ("process 7: late", "process 8: early")
