"""Which windows are set-up, warm-up and steady, what a part of a run holds, and damaged sections."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.errors import ProfileDataError, QueryError
from deepcontext.profiler.format import wire
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import (
    DEVICE_TIME_NS,
    GPU_TIME_NS,
    LAUNCH_COUNT,
    Aggregation,
    MetricDescriptor,
)
from deepcontext.profiler.format.node_sections import WINDOWS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.run_info import RunInfo
from tests.windows import rows, with_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.OPERATOR, "aten::mm"),
    Frame(FrameKind.KERNEL, "gemm"),
    Frame(FrameKind.OPERATOR, "aten::add"),
)
PEAK = MetricDescriptor("peak_bytes", "bytes", Aggregation.MAX, "a peak")


def window(
    steps: tuple[int, int],
    times: Sequence[int],
    metrics: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return a window of these steps, each with its time; windows are as long as their steps."""
    return {
        "first_step": steps[0],
        "end_step": steps[1],
        "begin_ns": steps[0] * 100,
        "end_ns": steps[1] * 100,
        "cpu_user_ns": 7,
        "timed_steps": len(times),
        "step_total_ns": sum(times),
        "step_minimum_ns": min(times, default=0),
        "step_maximum_ns": max(times, default=0),
        "step_m2": float(len(times) * np.var(times)) if times else 0.0,
        "metrics": [{"name": name, **each} for name, each in (metrics or {}).items()],
    }


@pytest.fixture
def cut(make_profile: MakeProfile) -> Callable[..., Profile]:
    def make(windows: Sequence[dict[str, Any]], *, nodes: int = 4, **table: Any) -> Profile:
        profile = make_profile(
            [0, 0, 1, 0],
            FRAMES,
            host_time_ns={1: 1000, 3: 50},
            call_samples_ns={1: [100] * 10, 3: [5] * 10},
            step_samples_ns=[100] * 9,
            run=RunInfo(wall_ns=1200, cpu_user_ns=100, steps=10),
        )
        return with_windows(profile, windows, node_count=nodes, **table)

    return make


def kinds(profile: Profile, warmup: int | None = None) -> list[str]:
    return [each.kind.value for each in profile.windows_after(warmup)]


def test_slow_windows_at_the_start_are_warm_up(cut: Callable[..., Profile]) -> None:
    profile = cut([
        window((0, 1), []),
        window((1, 2), [900]),
        window((2, 4), [130, 130]),
        window((4, 6), [100, 104]),
        window((6, 8), [109, 100]),
        window((8, 9), [100]),
    ])
    assert kinds(profile) == ["setup", "warmup", "warmup", "steady", "steady", "steady", "end"]
    assert kinds(profile, warmup=2) == ["setup", "warmup", *["steady"] * 4, "end"]
    assert kinds(profile, warmup=0) == ["setup", *["steady"] * 5, "end"]
    assert kinds(profile, warmup=50) == ["setup", *["warmup"] * 5, "end"]


def test_a_slow_window_among_later_ones_is_steady(cut: Callable[..., Profile]) -> None:
    times = [[100], [100], [500], [100], [100]]
    windows = [window((n, n + 1), each) for n, each in enumerate(times, 1)]
    assert kinds(cut([window((0, 1), []), *windows])) == ["setup", *["steady"] * 5, "end"]


def test_the_end_is_what_no_window_has(cut: Callable[..., Profile]) -> None:
    mm = {"host_time_ns": rows([1], [8], [700])}
    profile = cut([window((0, 1), []), window((1, 9), [100] * 8, mm)])
    end = profile.windows[-1]
    assert (end.first_step, end.steps, end.begin_ns, end.end_ns) == (10, 1, 900, 1200)
    assert (end.times.count, end.times.total_ns, end.cpu_user_ns) == (1, 100, 86)
    part = profile.within([end])
    assert part.exclusive("host_time_ns").tolist() == [0, 300, 0, 50]
    assert part.run.wall_ns == 300
    assert part.run.steps == 1
    assert part.run.start_unix_ns == 900
    assert part.metrics["step_time_ns"].minimum is None
    assert part.of_windows == (end,)


def test_sums_of_windows_add_up_in_any_order(cut: Callable[..., Profile]) -> None:
    one = {"call_duration_ns": rows([1, 3], [2, 1], [200, 5])}
    other = {"call_duration_ns": rows([3], [4], [20])}
    profile = cut([
        window((0, 1), []),
        window((1, 3), [100] * 2, one),
        window((3, 5), [90] * 2, other),
    ])
    _, first, second, end = profile.windows
    part = profile.within([second, first])
    assert part.counts("call_duration_ns").tolist() == [0, 2, 0, 5]
    assert part.exclusive("call_duration_ns").tolist() == [0, 200, 0, 25]
    assert part.metrics["call_duration_ns"].maximum is None
    times = part.metrics["step_time_ns"].row(0)
    assert times == {"count": 4, "total": 380, "minimum": 90, "maximum": 100, "m2": 100.0}
    whole = profile.within(profile.windows)
    assert whole.exclusive("host_time_ns").tolist() == profile.exclusive("host_time_ns").tolist()
    assert end.number == 3


def test_durations_are_stored_without_the_time_of_the_call_itself(
    cut: Callable[..., Profile],
) -> None:
    rows_of = {"host_time_ns": rows([1], [2], [70]), "call_duration_ns": rows([1], [2], [130])}
    profile = cut([window((0, 1), []), window((1, 2), [100], rows_of)])
    part = profile.within(profile.windows[1:2])
    assert part.exclusive("call_duration_ns").tolist() == [0, 200, 0, 0]
    assert part.counts("call_duration_ns").tolist() == [0, 2, 0, 0]
    end = profile.within(profile.windows[2:])
    assert end.exclusive("call_duration_ns").tolist() == [0, 800, 0, 50]


def with_rows(profile: Profile, descriptor: MetricDescriptor, node: int, total: int) -> Profile:
    made = MetricRows(
        descriptor,
        np.array([node], np.uint32),
        np.array([10], np.uint64),
        np.array([total], np.int64),
        maximum=np.array([total], np.int64),
    )
    return dataclasses.replace(profile, metrics={**profile.stored_metrics(), descriptor.name: made})


def test_estimates_are_divided_by_calls(cut: Callable[..., Profile]) -> None:
    calls = {"call_duration_ns": rows([1], [4], [400])}
    profile = cut(
        [window((0, 1), []), window((1, 5), [100] * 4, calls)], estimated=[DEVICE_TIME_NS.name]
    )
    profile = with_rows(profile, DEVICE_TIME_NS, 2, 1000)
    part = profile.within(profile.windows[1:2])
    assert part.exclusive(DEVICE_TIME_NS.name).tolist() == [0, 0, 400, 0]
    assert part.counts(DEVICE_TIME_NS.name).tolist() == [0, 0, 4, 0]


def test_launches_follow_from_the_times_of_kernels(cut: Callable[..., Profile]) -> None:
    kernels = {GPU_TIME_NS.name: rows([2], [3], [30])}
    profile = cut([window((0, 1), []), window((1, 4), [100] * 3, kernels)])
    profile = with_rows(with_rows(profile, GPU_TIME_NS, 2, 100), LAUNCH_COUNT, 2, 10)
    part = profile.within(profile.windows[1:2])
    assert part.exclusive(LAUNCH_COUNT.name).tolist() == [0, 0, 3, 0]


def test_peaks_are_those_of_the_whole_run(cut: Callable[..., Profile]) -> None:
    profile = with_rows(cut([window((0, 1), [])]), PEAK, 1, 77)
    assert profile.within(profile.windows[:1]).exclusive(PEAK.name).tolist() == [0, 77, 0, 0]


def test_a_correction_of_an_estimate_is_no_negative_time(cut: Callable[..., Profile]) -> None:
    less = {"host_time_ns": rows([1], [0], [-5])}
    profile = cut([window((0, 1), []), window((1, 2), [100], less)])
    assert profile.within(profile.windows[1:2]).query().total("host_time_ns") == 0


def test_older_profiles_have_no_windows(make_profile: MakeProfile) -> None:
    profile = make_profile([0, 0, 1, 0], FRAMES)
    assert profile.windows == ()
    with pytest.raises(QueryError, match="it has 0 windows"):
        profile.within(())


def test_windows_of_another_profile_are_refused(cut: Callable[..., Profile]) -> None:
    long = cut([window((0, 1), []), window((1, 2), [100])])
    short = cut([window((0, 1), [])])
    with pytest.raises(QueryError, match="no such windows; it has 2 windows"):
        short.within(long.windows)


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"x": rows([2, 2], [1, 1], [1, 1])}, "nodes must ascend"),
        ({"x": rows([1, 9], [1, 1], [1, 1])}, "nodes must ascend"),
        ({"x": rows([1, 2], [1], [1, 1])}, "wrong types or numbers of rows"),
        ({"x": rows([0, 1, 2, 3, 4], [1] * 5, [1] * 5)}, "wrong types or numbers of rows"),
        (
            {"x": {**rows([1], [1], [1]), "total": wire.column("UINT32", b"\1\0\0\0")}},
            "wrong types",
        ),
    ],
)
def test_damaged_rows_are_refused(
    cut: Callable[..., Profile], metrics: dict[str, dict[str, Any]], words: str
) -> None:
    as_stored = {"host_time_ns": metrics["x"]}
    profile = cut([window((0, 1), [], as_stored)])
    part = profile.within(profile.windows[:1])
    with pytest.raises(ProfileDataError, match=words):
        part.query().total("host_time_ns")


def test_a_damaged_section_is_refused(cut: Callable[..., Profile]) -> None:
    with pytest.raises(ProfileDataError, match="rows refer to 5 nodes, the tree has 4"):
        _ = cut([window((0, 1), [])], nodes=5).windows
    with pytest.raises(ProfileDataError, match="no WindowTable message"):
        _ = cut([]).with_section(WINDOWS, b"\xff\xff").windows


def test_a_table_without_windows_is_none(cut: Callable[..., Profile]) -> None:
    assert cut([]).windows == ()
