"""Windows of real programs: set-up, warm-up, steady state, and the end."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

import deepcontext
from deepcontext.errors import QueryError
from deepcontext.profiler.model.windows import WindowKind
from deepcontext.profiler.summaries.steps import step_count, step_rule, step_times

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deepcontext.profiler.model.windows import Window

INPUT = torch.randn(2, 8)


def wait_for_cut(windows: int) -> None:
    """Wait until a cut that is due has been made: the cutter runs beside the program."""
    from deepcontext import _native

    for _ in range(1000):
        if len(_native.read_tree([]).windows()) >= windows:
            return
        time.sleep(0.005)


def train(steps: int, *, pause_s: float = 0.0) -> None:
    """Train; with a pause, the run is cut after the first step, and after the second one."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters())
    for step in range(steps):
        model(INPUT).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(pause_s)
        if pause_s and step < 2:
            wait_for_cut(step + 1)


def check_consecutive(windows: Sequence[Window]) -> None:
    for before, after in pairwise(windows):
        assert after.begin_ns == before.end_ns
        assert after.first_step == before.last_step + 1


def check_sums(profile: deepcontext.Profile) -> None:
    """Check that all windows together are the run, whatever the metric."""
    whole = profile.within(profile.windows)
    for name, rows in profile.stored_metrics().items():
        assert whole.metrics[name].node.tolist() == rows.node.tolist(), name
        # Times of steps are rounded window by window.
        rounding = 1e-6 if name == "step_time_ns" else 0
        total = pytest.approx(rows.total.tolist(), rel=rounding, abs=0)
        assert whole.metrics[name].total.tolist() == total, name
        assert whole.metrics[name].count.tolist() == rows.count.tolist(), name


def calls(profile: deepcontext.Profile, name: str, under: str = "*") -> int:
    query = profile.query().name(name)
    nodes = (query if under == "*" else query.under(under)).nodes()
    return int(profile.counts("call_duration_ns")[nodes].sum())


def set_up_and_train(steps: int) -> None:
    with deepcontext.scope("loading"):
        for _ in range(100):
            torch.ones(3)
    train(steps, pause_s=0.03)
    with deepcontext.scope("saving"):
        torch.ones(3)


def test_set_up_is_apart_from_steady_steps(record: Any) -> None:
    profile = record(set_up_and_train, 12).profile
    windows = profile.windows
    check_consecutive(windows)
    check_sums(profile)
    assert windows[0].kind is WindowKind.SETUP
    assert (windows[0].first_step, windows[0].last_step) == (1, 1)
    assert windows[-1].kind is WindowKind.END
    assert sum(window.steps for window in windows) == 12
    assert sum(window.wall_ns for window in windows) == pytest.approx(profile.run.wall_ns, rel=0.2)
    set_up = profile.within(windows[:1])
    assert calls(set_up, "aten::ones", "loading") == 100
    later = profile.within(windows[1:-1])
    assert calls(later, "aten::ones", "loading") == 0


def test_a_steady_profile_is_a_profile(record: Any) -> None:
    profile = record(set_up_and_train, 30).profile
    steady = profile.steady(warmup=2)
    assert steady is not None
    steps = sum(window.steps for window in steady.of_windows)
    assert steps > 1
    assert min(window.first_step for window in steady.of_windows) == 3
    assert step_count(steady) == steps
    times = step_times(steady)
    assert times is not None
    assert times.count == steps
    assert times.minimum is not None
    assert times.minimum >= 30_000_000
    rule = step_rule(steady)
    assert rule is not None
    assert rule.count == steps
    # Each step has as many operators as another.
    assert calls(steady, "aten::linear") == pytest.approx(2 * steps, abs=2)
    assert steady.run.wall_ns == sum(window.wall_ns for window in steady.of_windows)
    assert steady.windows == ()
    assert steady.query().total("alloc_bytes") > 0
    again = deepcontext.Profile.from_bytes(steady.to_bytes())
    assert again.query().total("host_time_ns") == steady.query().total("host_time_ns")


def one_step() -> None:
    train(1)


def test_a_program_of_one_step_has_set_up_and_an_end(record: Any) -> None:
    def program() -> None:
        train(1)
        wait_for_cut(1)

    profile = record(program).profile
    assert [window.kind for window in profile.windows] == [WindowKind.SETUP, WindowKind.END]
    assert profile.steady() is None


def three_steps() -> None:
    for _ in range(3):
        train(1, pause_s=0.05)


def test_three_steps_have_a_steady_state(record: Any) -> None:
    profile = record(three_steps).profile
    steady = profile.steady()
    assert steady is not None
    # The second step, and the third one if it was cut before the end.
    assert sum(window.steps for window in steady.of_windows) in {1, 2}


def nothing() -> None:
    torch.ones(1)


def test_a_program_without_steps_has_no_windows(record: Any) -> None:
    profile = record(nothing).profile
    assert profile.windows == ()
    assert profile.steady() is None
    with pytest.raises(QueryError, match="no such windows; it has 0 windows"):
        profile.within([])


def marks(count: int) -> None:
    for _ in range(count):
        deepcontext.step()


def test_many_short_steps_have_few_windows(record: Any) -> None:
    profile = record(marks, 300_000).profile
    assert 2 <= len(profile.windows) <= 25
    check_consecutive(profile.windows)
    assert sum(window.steps for window in profile.windows) == 300_000
    assert profile.trust.counters["window_cuts"] < 1000


def test_threads_that_step_at_once(record: Any) -> None:
    def program() -> None:
        workers = [threading.Thread(target=train, args=(20,)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    profile = record(program).profile
    check_consecutive(profile.windows)
    check_sums(profile)
    assert sum(window.steps for window in profile.windows) == 20


def test_stop_inside_a_step_leaves_the_rest_to_the_end() -> None:
    deepcontext.start(cpu_rate=0)
    train(2)
    wait_for_cut(1)
    with deepcontext.scope("half a step"):
        torch.ones(3)
        profile = deepcontext.stop()
    assert profile.windows[-1].kind is WindowKind.END
    rest = profile.windows[1:]  # the second step's cut is made when its turn comes
    assert calls(profile.within(rest), "aten::ones") == 1


def test_a_snapshot_has_windows(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    session = deepcontext.start(path, snapshot_interval=0)
    train(5, pause_s=0.03)
    session.snapshot()
    snapshot = deepcontext.Profile.load(path)
    check_sums(snapshot)
    assert sum(window.steps for window in snapshot.windows) == 5
    train(5, pause_s=0.03)
    whole = deepcontext.stop()
    assert sum(window.steps for window in whole.windows) == 10


def _child(path: str) -> None:
    deepcontext.start(path, force=True)
    train(4, pause_s=0.03)
    deepcontext.stop()


def test_a_forked_child_has_windows_of_its_own(tmp_path: Path) -> None:
    deepcontext.start(cpu_rate=0)
    train(6, pause_s=0.03)
    worker = multiprocessing.get_context("fork").Process(
        target=_child, args=(os.fspath(tmp_path / "child.dcprof"),)
    )
    worker.start()
    worker.join()
    train(6, pause_s=0.03)
    profile = deepcontext.stop()
    assert worker.exitcode == 0
    child = deepcontext.Profile.load(tmp_path / "child.dcprof")
    assert sum(window.steps for window in child.windows) == 4
    check_sums(child)
    assert sum(window.steps for window in profile.windows) == 12
    check_sums(profile)


def test_sessions_have_windows_of_their_own(record: Any) -> None:
    record(set_up_and_train, 8)
    profile = record(set_up_and_train, 5).profile
    assert sum(window.steps for window in profile.windows) == 5
    check_sums(profile)


def test_a_merged_job_has_the_steady_states_of_its_ranks(record: Any) -> None:
    from deepcontext.profiler.model.job.fold import merge

    profile = record(set_up_and_train, 5).profile
    merged = merge({"a": profile, "b": profile})
    kinds = [WindowKind.SETUP, WindowKind.STEADY, WindowKind.END]
    assert [each.kind for each in merged.windows] == kinds
    one, both = profile.steady(), merged.steady()
    assert one is not None
    assert both is not None
    assert both.inclusive("host_time_ns")[0] == 2 * one.inclusive("host_time_ns")[0] > 0


def stall_every_tenth(steps: int) -> None:
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters())
    for number in range(1, steps + 1):
        model(INPUT).sum().backward()
        if number % 10 == 0:
            time.sleep(0.2)
        optimizer.step()


def test_slow_steps_are_told_by_number(record: Any, tmp_path: Path, capsys: Any) -> None:
    from deepcontext.profiler.summaries.step_history import step_history
    from deepcontext.ui.cli.app import main

    profile = record(stall_every_tenth, 60).profile
    history = step_history(profile)
    assert history is not None
    assert history.count == 59
    # On a busy machine another step may be slow, too, but hardly eight of them.
    stalled = {step.number for step in history.slowest if step.duration_ns >= 200_000_000}
    assert stalled >= {10, 20, 30, 40, 50, 60}
    assert history.quantile(0.5) < 200_000_000 < history.quantile(0.99)
    assert sum(part.count for part in history.parts) == 59
    path = tmp_path / "stalls.dcprof"
    profile.save(path)
    assert main(["report", "--steps", str(path)]) == 0
    said = capsys.readouterr().out
    assert "a step is what ends with Optimizer.step#SGD.step" in said
    assert "60 steps ended" in said
    assert "setup" in said
    assert step_history(profile.within(profile.windows[:1])) is None
