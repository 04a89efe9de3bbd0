"""Kernels of a replayed graph belong to the code that captured them, under the call that replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record


UNSEEN = "graph replay (captured before profiling)"


def test_kernels_go_to_capture_and_replay(record: Record, gpu_with_graph_nodes: FakeGpu) -> None:
    gpu = gpu_with_graph_nodes

    def forward() -> None:
        gpu.launch("gemm", us=10)
        gpu.launch("relu", us=2)

    def capture() -> int:
        gpu.capture_begin()
        forward()
        return gpu.instantiate(gpu.capture_end())

    def work() -> None:
        executable = capture()
        for _ in range(5):
            gpu.replay(executable)
        gpu.deliver(shuffle=3)

    recording = record(work)
    kernels = recording.kernels()
    assert sum(kernels.values()) == 10
    for path, count in kernels.items():
        assert count == 5
        replay = path.index("graph replay")
        assert path[:replay] == ("work", "FakeGpu.replay")
        assert path[-4:-2] == ("capture", "forward")
        assert path[-1] in {"gemm", "relu"}
    assert recording.figure("graph_captured") == 10
    assert recording.figure("graph_launched") == 0
    assert_conserved(recording, gpu)


def test_captured_kernels_are_told_apart_by_their_line(
    record: Record, gpu_with_graph_nodes: FakeGpu
) -> None:
    gpu = gpu_with_graph_nodes

    def work() -> None:
        gpu.capture_begin()
        gpu.launch("same", us=1)
        gpu.launch("same", us=2)
        executable = gpu.instantiate(gpu.capture_end())
        for _ in range(2):
            gpu.replay(executable)
        gpu.deliver()

    recording = record(work)
    rows = recording.profile.metrics["gpu_time_ns"]
    assert sorted(rows.total.tolist()) == [2_000, 4_000]


def test_a_graph_captured_before_the_session_stays_under_its_replay(
    record: Record, gpu_with_graph_nodes: FakeGpu
) -> None:
    gpu = gpu_with_graph_nodes

    gpu.capture_begin()
    gpu.launch("old", us=4)
    executable = gpu.instantiate(gpu.capture_end())

    def work() -> None:
        gpu.replay(executable)
        gpu.deliver()

    recording = record(work)
    assert recording.by_path("gpu_time_ns") == {("work", "FakeGpu.replay", UNSEEN, "old"): 4_000}
    assert recording.figure("graph_launched") == 1
    notes = " ".join(recording.profile.trust.notes)
    assert "1 kernels ran in graphs captured before profiling began" in notes
    assert_conserved(recording, gpu)


def test_a_graph_that_is_only_instantiated_in_the_session_was_not_captured_in_it(
    record: Record, nvidia: FakeGpu
) -> None:
    """CUPTI reports a clone's nodes as new ones, but the code that cloned them captured nothing."""
    nvidia.capture_begin()
    nvidia.launch("old", us=4)
    graph = nvidia.capture_end()

    def work() -> None:
        nvidia.replay(nvidia.instantiate(graph))
        nvidia.deliver()

    recording = record(work)
    assert recording.by_path("gpu_time_ns") == {("work", "FakeGpu.replay", UNSEEN, "old"): 4_000}
    assert recording.figure("graph_launched") == 1
    assert_conserved(recording, nvidia)


def test_a_session_may_end_while_a_graph_is_captured(record: Record, nvidia: FakeGpu) -> None:
    """CUDA aborts a capture if any thread waits for the context meanwhile."""

    def work() -> None:
        nvidia.launch("before", us=1)
        nvidia.deliver()
        nvidia.capture_begin()
        nvidia.launch("captured", us=1)

    recording = record(work)
    assert nvidia.count("misuses") == 0
    assert "a CUDA graph was being captured when the session ended" in recording.report.reason
    assert recording.counters["gpu_records_matched"] == 1


def test_a_session_after_a_capture_waits_for_the_device(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.capture_begin()
        nvidia.launch("captured", us=1)
        nvidia.replay(nvidia.instantiate(nvidia.capture_end()))
        nvidia.deliver()

    assert record(work).report.status == "ran"


def test_destroyed_graphs_are_forgotten(record: Record, gpu_with_graph_nodes: FakeGpu) -> None:
    gpu = gpu_with_graph_nodes

    def work() -> None:
        for i in range(50):
            gpu.capture_begin()
            gpu.launch(f"k{i}", us=1)
            graph = gpu.capture_end()
            executable = gpu.instantiate(graph)
            gpu.replay(executable)
            gpu.deliver()
            gpu.destroy(graph)
            gpu.destroy(executable)

    recording = record(work)
    assert recording.figure("graph_nodes_known") == 0
    assert_conserved(recording, gpu)


def test_kernels_of_child_graphs_go_to_the_code_that_captured_them(
    record: Record, nvidia: FakeGpu
) -> None:
    """Instantiating moves their nodes into the executable graph, which gives them other ids."""
    gpu = nvidia

    def product() -> int:
        gpu.capture_begin()
        gpu.launch("gemm", us=10)
        return gpu.capture_end()

    def norm() -> int:
        gpu.capture_begin()
        gpu.launch("norm", us=2)
        gpu.launch("scale", us=1)
        return gpu.capture_end()

    def build() -> int:
        graph = gpu.graph()
        gpu.add_child(graph, product())
        gpu.add_node(graph, "fusion", us=3)
        gpu.add_child(graph, norm())
        return gpu.instantiate(graph)

    def work() -> None:
        for _ in range(2):
            executable = build()
            for _ in range(5):
                gpu.replay(executable)
            gpu.deliver(shuffle=4)
            gpu.destroy(executable)

    recording = record(work)
    kernels = recording.kernels()
    assert sum(kernels.values()) == 40
    places = {"gemm": "product", "norm": "norm", "scale": "norm", "fusion": "build"}
    for path in kernels:
        after = path[path.index("graph replay") :]
        assert places[path[-1]] in after
        assert "build" in after
    assert recording.figure("graph_captured") == 40
    assert recording.figure("graph_launched") == 0
    assert_conserved(recording, gpu)


@pytest.mark.parametrize("with_parameters", [False, True])
def test_graphs_that_the_device_may_launch_are_said(
    record: Record, nvidia: FakeGpu, *, with_parameters: bool
) -> None:
    """What the device launches leaves no record."""

    def capture() -> int:
        nvidia.capture_begin()
        nvidia.launch("k", us=1)
        return nvidia.capture_end()

    def work() -> None:
        graph = capture()
        nvidia.replay(nvidia.instantiate(graph))
        nvidia.replay(nvidia.instantiate_for_device(graph, with_parameters=with_parameters))
        nvidia.deliver()

    recording = record(work)
    assert recording.figure("device_graphs") == 1
    assert any(
        "made 1 CUDA graphs that the GPU may launch itself" in note
        for note in recording.profile.trust.notes
    )
    assert recording.report.status == "ran"
