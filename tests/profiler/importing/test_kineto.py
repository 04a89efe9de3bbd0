"""A trace of torch.profiler becomes a tree with the frames, metrics and steps of a recorded profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.steps import step_rule, step_times
from tests.profiler.importing import traces

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile

US = 1000


@pytest.fixture
def training(tmp_path: Path) -> Profile:
    return load(traces.write(tmp_path / "trace.json.gz", traces.training(), **traces.NVIDIA))


def paths(profile: Profile, name: str) -> list[str]:
    """Return the paths that end with a frame of this name, the root left out."""
    return [
        " > ".join(frame.name for frame in profile.path(node)[1:])
        for node in range(len(profile.tree))
        if profile.frame(node).name == name
    ]


def node_of(profile: Profile, name: str) -> int:
    (found,) = [n for n in range(len(profile.tree)) if profile.frame(n).name == name]
    return found


def test_operators_nest_below_modules_and_functions(training: Profile) -> None:
    assert paths(training, "aten::addmm") == [
        "MainThread > <module> > Linear '0' > Linear.forward > aten::linear > aten::addmm"
    ]
    assert training.counts("call_duration_ns")[node_of(training, "aten::addmm")] == 3
    assert training.exclusive("host_time_ns")[node_of(training, "aten::linear")] == 3 * 20 * US


def test_kernels_are_below_the_operator_that_launched_them(training: Profile) -> None:
    assert [path.split(" > ")[-2] for path in paths(training, "gemm")] == ["aten::addmm"]
    gemm = node_of(training, "gemm")
    assert training.exclusive("gpu_time_ns")[gemm] == 3 * 300 * US
    assert training.exclusive("queue_delay_ns")[gemm] == 3 * 50 * US
    assert training.metrics["grid_block_count"].total[0] == 8
    assert training.trust.counters["launches_matched"] == 9
    assert training.trust.counters["launches_unmatched"] == 0


def test_backward_operators_are_below_their_forward_operator(training: Profile) -> None:
    (path,) = paths(training, "gemm_backward")
    assert path.split(" > ")[4:] == [
        "aten::linear",
        "aten::addmm",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "AddmmBackward0",
        "aten::mm",
        "gemm_backward",
    ]
    assert training.tree.phase[node_of(training, "gemm_backward")] == Phase.BACKWARD
    assert training.tree.phase[node_of(training, "gemm")] == Phase.FORWARD
    assert training.trust.counters["backward_links_found"] == 6
    # What has no forward operator is below the call that waits for the backward pass.
    (rest,) = paths(
        training, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    )
    assert rest.split(" > ")[-2] == "torch._C._EngineBase.run_backward"


def test_the_elapsed_time_of_the_main_thread_is_divided_completely(training: Profile) -> None:
    found = account(training)
    assert sum(value for _, value in found.causes) == found.whole_ns
    assert found.of(Cause.UNKNOWN) == 0
    assert found.of(Cause.DEVICE) == 3 * 60 * US
    assert found.of(Cause.FORWARD) == 3 * 100 * US
    assert found.of(Cause.BACKWARD) == 3 * (150 + 50) * US
    assert found.of(Cause.OPTIMIZER) == 3 * 50 * US


def test_steps_cut_windows_that_add_up_to_the_run(training: Profile) -> None:
    rule, times = step_rule(training), step_times(training)
    assert rule is not None
    assert times is not None
    assert rule.explain() == "what ends with a call of step() of torch.profiler"
    assert times.count == 3
    windows = training.windows
    assert [window.steps for window in windows] == [0, 1, 1, 1, 0]
    for metric in ("host_time_ns", "gpu_time_ns", "traced_time_ns", "launch_count", "gpu_idle_ns"):
        parts = sum(training.within([each]).exclusive(metric) for each in windows)
        np.testing.assert_array_equal(parts, training.exclusive(metric), metric)


def test_idle_time_is_charged_to_what_the_host_did(training: Profile) -> None:
    idle = training.exclusive("gpu_idle_ns")
    assert idle.sum() + training.exclusive("gpu_gap_ns").sum() + training.exclusive(
        "gpu_time_ns"
    ).sum() == ((2 * 1000 + 800 + 10 - 100) * US)
    # Between the last kernel of a step and the next launch: the optimizer's launch comes at 770.
    assert idle[node_of(training, "Optimizer.step#SGD.step")] > 0


def test_the_time_line_has_each_step_with_its_events(training: Profile) -> None:
    kept = training.exemplars
    assert [each.number for each in kept] == [1, 2, 3]
    lanes = training.lanes(kept[0])
    assert [(lane.name, lane.device, lane.stream, len(lane)) for lane in lanes] == [
        ("MainThread", None, 0, 4),
        ("thread", None, 0, 4),
        ("nvidia", 0, 7, 3),
    ]
    names = [training.frame(node).name for node in lanes[2].node.tolist()]
    assert names == ["gemm", "gemm_backward", "add"]
    assert lanes[2].duration_ns.tolist() == [300 * US, 200 * US, 10 * US]


def test_the_run_is_described_as_far_as_the_file_says(training: Profile) -> None:
    assert (training.run.rank, training.run.ranks) == (1, 4)
    assert training.run.wall_ns == 3010 * US
    reports = {each.name: each for each in training.trust.collectors}
    assert reports["read from"].details["file"] == "trace.json.gz"
    assert reports["memory"].status == "off"
    assert "nvidia" in reports
    assert "amd" not in reports


def test_a_profile_survives_saving(training: Profile, tmp_path: Path) -> None:
    training.save(tmp_path / "out.dcprof")
    again = load(tmp_path / "out.dcprof")
    assert [again.path(node) for node in range(len(again.tree))] == [
        training.path(node) for node in range(len(training.tree))
    ]
    assert again.sections == training.sections
    assert again.run == training.run


def test_old_files_have_whole_times_and_other_names(tmp_path: Path) -> None:
    events = [
        traces.op("aten::mul", 1_683_564_901_548_726, 100),
        traces.launch(1_683_564_901_548_730, 863_350),
        traces.kernel("mul", 1_683_564_901_549_000, 7, 863_350, External_id=863_350),
        {"ph": "s", "cat": "async_cpu_to_gpu", "id": 1, "pid": 1, "tid": 1, "ts": 1},
    ]
    profile = load(traces.write(tmp_path / "old.json", events))
    assert paths(profile, "mul") == ["MainThread > aten::mul > mul"]
    assert profile.exclusive("gpu_time_ns").sum() == 7 * US
    assert profile.run.start_unix_ns == 1_683_564_901_548_726_000


def test_a_kernel_without_a_call_is_joined_by_external_id(tmp_path: Path) -> None:
    events = [
        traces.op("aten::mul", 10, 100, External_id=5),
        traces.kernel("mul", 200, 7, 99, External_id=5),
        traces.kernel("earlier", 5, 7, 98),
    ]
    profile = load(traces.write(tmp_path / "trace.json", events))
    assert paths(profile, "mul") == ["MainThread > aten::mul > mul"]
    assert paths(profile, "earlier") == ["GPU work of unknown origin > earlier"]
    assert "1 of 2 kernels" in profile.trust.notes[0]


def test_graph_replays_stand_below_their_launch(tmp_path: Path) -> None:
    events = [
        traces.op("replay", 10, 100),
        traces.launch(20, 4, name="hipGraphLaunch"),
        traces.kernel("first", 40, 7, 4),
        traces.kernel("second", 50, 7, 4),
        traces.kernel("Memcpy HtoD (Pinned -> Device)", 60, 7, 4, category="gpu_memcpy", bytes=64),
    ]
    profile = load(traces.write(tmp_path / "trace.json", events))
    assert paths(profile, "second") == ["MainThread > replay > graph replay > second"]
    assert profile.frame(node_of(profile, "Memcpy HtoD")).kind is FrameKind.COPY
    assert profile.exclusive("copy_bytes").sum() == 64
    assert "amd" in {each.name for each in profile.trust.collectors}


def test_flows_link_backward_where_numbers_do_not(tmp_path: Path) -> None:
    flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 7, "pid": traces.PID}
    events = [
        traces.op("aten::mul", 10, 20),
        traces.op("MulBackward0", 50, 20, tid=traces.ENGINE, **{"Fwd thread id": 1}),
        flow | {"ph": "s", "tid": traces.MAIN, "ts": 10},
        flow | {"ph": "f", "tid": traces.ENGINE, "ts": 50, "bp": "e"},
    ]
    profile = load(traces.write(tmp_path / "trace.json", events))
    assert paths(profile, "MulBackward0") == ["MainThread > aten::mul > MulBackward0"]


def test_a_function_without_an_end_takes_no_time_from_others(tmp_path: Path) -> None:
    """torch.profiler lets a function whose return it missed end with the trace."""
    events = [
        traces.python("train.py(1): outer", 0, 100),
        traces.python("train.py(2): lost", 10, 1000),
        traces.op("aten::mul", 20, 30),
        traces.python("train.py(3): later", 150, 50),
    ]
    profile = load(traces.write(tmp_path / "trace.json", events))
    assert paths(profile, "later") == ["MainThread > later"]
    assert profile.exclusive("elapsed_time_ns").sum() == 150 * US
    assert account(profile).of(Cause.OPERATORS) == 30 * US
