"""Replays of graphs that run no kernel: no lost launches; replays that lost their kernels still are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record

REPLAYS = 60


def launch_and_replay(gpu: FakeGpu, executable: int, times: int = REPLAYS) -> None:
    for _ in range(times):
        gpu.launch("k", us=2)
        gpu.replay(executable)


def capture(gpu: FakeGpu, *nodes: str) -> int:
    gpu.capture_begin()
    for kind in nodes:
        gpu.node(kind)
    return gpu.instantiate(gpu.capture_end())


def conditional(gpu: FakeGpu) -> int:
    """Return a graph whose kernel is in the body of a conditional node."""
    gpu.capture_begin()
    gpu.conditional_begin(9)
    gpu.launch("body", us=3, stream=9)
    gpu.conditional_end(9)
    return gpu.instantiate(gpu.capture_end())


def test_an_empty_graph_is_no_lost_launch(record: Record, gpu_with_graph_nodes: FakeGpu) -> None:
    gpu = gpu_with_graph_nodes

    def work() -> None:
        launch_and_replay(gpu, gpu.instantiate(gpu.graph()))
        launch_and_replay(gpu, capture(gpu))
        gpu.deliver()

    recording = record(work)
    assert recording.report.status == "ran", recording.report.reason
    assert recording.figure("launches") == recording.figure("answered") == 2 * REPLAYS
    assert_conserved(recording, gpu)


@pytest.mark.parametrize("kind", ["memory", "host", "event"])
def test_a_graph_of_nodes_without_a_record_is_no_lost_launch(
    record: Record, nvidia: FakeGpu, kind: str
) -> None:
    def work() -> None:
        launch_and_replay(nvidia, capture(nvidia, kind, kind))
        nvidia.deliver()

    recording = record(work)
    assert recording.report.status == "ran", recording.report.reason
    assert recording.figure("launches") == REPLAYS
    assert recording.figure("silent_replays") == REPLAYS
    assert f"{REPLAYS} replays of CUDA graphs ran nothing" in " ".join(
        recording.profile.trust.notes
    )
    assert_conserved(recording, nvidia)


def test_a_condition_that_never_holds_is_no_lost_launch(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        executable = conditional(nvidia)
        nvidia.iterations(executable, 0)
        launch_and_replay(nvidia, executable)
        nvidia.deliver()

    recording = record(work)
    assert recording.report.status == "ran", recording.report.reason
    assert recording.figure("silent_replays") == REPLAYS
    assert_conserved(recording, nvidia)


def test_a_graph_with_kernels_that_lost_them_all_is_a_loss(record: Record, nvidia: FakeGpu) -> None:
    """Also beside graphs that run nothing, and for a graph that is made after one was destroyed."""

    def work() -> None:
        empty = capture(nvidia)
        launch_and_replay(nvidia, empty)
        nvidia.destroy(empty)
        nvidia.capture_begin()
        nvidia.launch("in graph", us=5)
        nvidia.node("memory")
        executable = nvidia.instantiate(nvidia.capture_end())
        nvidia.deliver()
        nvidia.take_over()
        for _ in range(40):
            nvidia.replay(executable)
        nvidia.deliver()

    report = record(work).report
    assert report.status == "degraded"
    assert f"40 of {REPLAYS + 40} launches of GPU work left no record" in report.reason


def test_a_conditional_graph_counts_from_its_first_record_on(
    record: Record, nvidia: FakeGpu
) -> None:
    """Its first replays count, too: the condition is the same at the begin of each."""

    def work() -> None:
        executable = conditional(nvidia)
        launch_and_replay(nvidia, executable)
        nvidia.deliver()
        nvidia.take_over()
        for _ in range(20):
            nvidia.replay(executable)
        nvidia.deliver()

    recording = record(work)
    assert recording.figure("silent_replays") == 0
    assert recording.report.status == "degraded"
    lost = f"20 of {2 * REPLAYS + 20} launches of GPU work left no record"
    assert lost in recording.report.reason


@pytest.mark.parametrize("what", ["child graph", "graph made before", "executable made before"])
def test_what_cannot_be_told_apart_counts_as_lost(
    record: Record, nvidia: FakeGpu, what: str
) -> None:
    """A child graph may hold kernels; a graph that is made before the session may, too."""
    nvidia.capture_begin()
    graph = nvidia.capture_end()
    executable = nvidia.instantiate(graph)

    def work() -> None:
        if what == "child graph":
            replayed = capture(nvidia, "child graph")
        elif what == "graph made before":
            replayed = nvidia.instantiate(graph)
        else:
            replayed = executable
        launch_and_replay(nvidia, replayed)
        nvidia.deliver()

    report = record(work).report
    assert report.status == "degraded"
    lost = f"{REPLAYS} of {2 * REPLAYS} launches of GPU work left no record"
    assert lost in report.reason


def test_roctracer_tells_of_no_nodes_so_that_an_empty_graph_counts_as_lost(
    record: Record, roctracer: FakeGpu
) -> None:
    def work() -> None:
        launch_and_replay(roctracer, capture(roctracer))
        roctracer.deliver()

    report = record(work).report
    assert report.status == "degraded"
    lost = f"{REPLAYS} of {2 * REPLAYS} launches of GPU work left no record"
    assert lost in report.reason
