"""Graphs that change: updated in place, with conditional nodes, recorded again, made by a library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording
    from tests.collectors.gpu.test_scenarios import Record

Kernels = dict[tuple[str, str], int]


def by_maker(recording: Recording, makers: set[str]) -> Kernels:
    """Runs of each kernel of a graph by the function that made its node; "" for none of them."""
    found: Kernels = {}
    for path, count in recording.kernels().items():
        replay = next((at for at, name in enumerate(path) if name == "graph replay"), len(path))
        maker = next((name for name in path[replay:] if name in makers), "")
        found[maker, path[-1]] = found.get((maker, path[-1]), 0) + count
    return found


def assert_complete(recording: Recording, gpu: FakeGpu, replays: int) -> None:
    """Each replay is one launch, and left records."""
    assert recording.report.status == "ran", recording.report.reason
    assert recording.counters["gpu_records_unmatched"] == 0
    if gpu.vendor.has_graph_nodes:
        assert recording.figure("graph_launched") == 0
    if gpu.vendor.interface == "cupti":  # AMD's tools number kernels, not replays
        assert recording.figure("launches") == recording.figure("answered") == replays
    assert_conserved(recording, gpu)


def known(gpu: FakeGpu, expected: Kernels) -> Kernels:
    """What is expected of a vendor, who may not tell graph nodes apart."""
    if gpu.vendor.has_graph_nodes:
        return expected
    found: Kernels = {}
    for (_, kernel), count in expected.items():
        found["", kernel] = found.get(("", kernel), 0) + count
    return found


def capture(gpu: FakeGpu, *kernels: str) -> int:
    gpu.capture_begin()
    for kernel in kernels:
        gpu.launch(kernel, us=5)
    return gpu.capture_end()


def replay(gpu: FakeGpu, executables: list[int], times: int) -> None:
    for _ in range(times):
        for executable in executables:
            gpu.replay(executable)


def test_an_updated_graph_keeps_the_paths_of_the_capture_it_was_made_from(
    record: Record, gpu: FakeGpu
) -> None:
    """cudaGraphExecUpdate changes what the nodes do: the kernels' names follow, the nodes stay."""

    def first() -> int:
        return capture(gpu, "gemm_a", "relu")

    def second() -> int:
        return capture(gpu, "gemm_b", "relu")

    def other_shape() -> int:
        return capture(gpu, "gemm_a", "relu", "norm")

    def work() -> None:
        executable = gpu.instantiate(first())
        replay(gpu, [executable], 3)
        for _ in range(40):
            newer = second()
            assert gpu.update(executable, newer)
            gpu.destroy(newer)
            gpu.replay(executable)
        assert not gpu.update(executable, other_shape())
        gpu.replay(executable)
        gpu.deliver(shuffle=7)

    recording = record(work)
    assert by_maker(recording, {"first", "second", "other_shape"}) == known(
        gpu, {("first", "gemm_a"): 3, ("first", "gemm_b"): 41, ("first", "relu"): 44}
    )
    if gpu.vendor.interface == "cupti":  # the first graph, its executable, the other shape
        assert recording.figure("graph_nodes_known") == 2 + 2 + 3
    assert_complete(recording, gpu, replays=44)


def test_a_conditional_node_runs_as_often_as_its_condition_holds(
    record: Record, nvidia: FakeGpu
) -> None:
    def body() -> None:
        nvidia.launch("decode", us=3, stream=9)
        nvidia.launch("sample", us=1, stream=9)

    def condition() -> int:
        nvidia.capture_begin()
        nvidia.launch("condition", us=1)
        nvidia.conditional_begin(9)
        body()
        nvidia.conditional_end(9)
        nvidia.launch("after", us=2)
        return nvidia.instantiate(nvidia.capture_end())

    def work() -> None:
        executable = condition()
        for times in (0, 1, 5, 2):
            nvidia.iterations(executable, times)
            nvidia.replay(executable)
        nvidia.deliver(shuffle=5)

    recording = record(work)
    assert by_maker(recording, {"body"}) == {
        ("", "condition"): 4,
        ("body", "decode"): 8,
        ("body", "sample"): 8,
        ("", "after"): 4,
    }
    assert recording.total("gpu_time_ns") == 1_000 * (4 * (1 + 2) + 8 * (3 + 1))
    assert_complete(recording, nvidia, replays=4)


def test_a_tree_of_graphs_keeps_each_graph_under_its_own_code(record: Record, gpu: FakeGpu) -> None:
    """As torch.compile does: one graph after the other, one recorded again while records are out."""

    def root() -> int:
        return gpu.instantiate(capture(gpu, "embed", "shared"))

    def left() -> int:
        return gpu.instantiate(capture(gpu, "attention", "shared"))

    def right() -> int:
        return gpu.instantiate(capture(gpu, "mlp", "shared"))

    def right_again() -> int:
        return gpu.instantiate(capture(gpu, "mlp", "shared"))

    def work() -> None:
        graphs = [root(), left(), right()]
        replay(gpu, graphs, 10)
        gpu.destroy(graphs.pop())
        graphs.append(right_again())
        replay(gpu, graphs, 5)
        gpu.deliver(shuffle=11)

    recording = record(work)
    expected: Kernels = {}
    for maker, kernel, count in (
        ("root", "embed", 15),
        ("left", "attention", 15),
        ("right", "mlp", 10),
        ("right_again", "mlp", 5),
    ):
        expected |= {(maker, kernel): count, (maker, "shared"): count}
    assert by_maker(recording, {"root", "left", "right", "right_again"}) == known(gpu, expected)
    assert_complete(recording, gpu, replays=45)


def test_a_graph_that_a_library_makes_node_by_node(record: Record, gpu: FakeGpu) -> None:
    """As XLA makes command buffers: no capture; a node is given another kernel before a replay."""

    def make() -> int:
        graph = gpu.graph()
        gpu.add_node(graph, "fusion", us=4)
        gpu.add_node(graph, "gemm", us=6)
        return gpu.instantiate(graph)

    def change(executable: int) -> None:
        gpu.set_node(executable, 1, "gemm_of_another_buffer", us=7)

    def work() -> None:
        executable = make()
        gpu.replay(executable)
        for _ in range(8):
            change(executable)
            gpu.replay(executable)
        gpu.deliver(shuffle=3)

    recording = record(work)
    assert by_maker(recording, {"make", "change"}) == known(
        gpu, {("make", "fusion"): 9, ("make", "gemm"): 1, ("make", "gemm_of_another_buffer"): 8}
    )
    assert_complete(recording, gpu, replays=9)
