"""Lazy loading: the first launch of a kernel loads its code, by calls inside the launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording
    from tests.collectors.gpu.test_scenarios import Record

KERNELS = [f"k{i}" for i in range(20)]


def copies(recording: Recording) -> dict[str, int]:
    """Copies by name; all of them below the line that launched."""
    found = recording.by_path("copy_bytes", count=True)
    assert all("FakeGpu.launch" in path for path in found)
    return {path[-1]: count for path, count in found.items()}


def assert_answered(recording: Recording, gpu: FakeGpu, launches: int) -> None:
    assert recording.report.status == "ran", recording.report.reason
    if gpu.vendor.interface == "cupti":
        assert recording.figure("launches") == recording.figure("answered") == launches
    assert_conserved(recording, gpu)


def test_code_is_loaded_inside_the_first_launch(record: Record, gpu: FakeGpu) -> None:
    gpu.lazy_loading()

    def work() -> None:
        for kernel in KERNELS:
            gpu.launch(kernel, us=5, count=3)
        gpu.deliver(shuffle=2)

    recording = record(work)
    assert recording.kernels() == {("work", "FakeGpu.launch", kernel): 3 for kernel in KERNELS}
    assert copies(recording) == {"Memcpy HtoD": 20}
    assert_answered(recording, gpu, launches=3 * 20 + 20)


def test_code_is_loaded_while_a_graph_is_captured(record: Record, gpu: FakeGpu) -> None:
    """The capture takes the launch, not the copy inside it."""
    gpu.lazy_loading()

    def work() -> None:
        gpu.capture_begin()
        for kernel in KERNELS:
            gpu.launch(kernel, us=5)
        executable = gpu.instantiate(gpu.capture_end())
        for _ in range(3):
            gpu.replay(executable)
        gpu.deliver(shuffle=2)

    recording = record(work)
    kernels = recording.kernels()
    assert {path[-1] for path in kernels} == set(KERNELS)
    assert set(kernels.values()) == {3}
    if gpu.vendor.has_graph_nodes:
        assert recording.figure("graph_captured") == 3 * 20
    assert copies(recording) == {"Memcpy HtoD": 20}
    assert_answered(recording, gpu, launches=3 + 20)


def test_a_launch_that_loads_its_code_and_fails(record: Record, nvidia: FakeGpu) -> None:
    nvidia.lazy_loading()
    nvidia.fail("cuLaunchKernel", 701)

    def work() -> None:
        for kernel in KERNELS:
            nvidia.launch(kernel, us=5)
        nvidia.deliver()

    recording = record(work)
    assert recording.kernels() == {}
    assert copies(recording) == {"Memcpy HtoD": 20}
    assert_answered(recording, nvidia, launches=20)


def test_a_launch_whose_code_cannot_be_loaded(record: Record, nvidia: FakeGpu) -> None:
    """The copy of the code fails, and then the launch around it."""
    nvidia.lazy_loading()

    def work() -> None:
        nvidia.launch("loaded", us=5, count=3)
        nvidia.fail("cuMemcpy", 2)
        nvidia.fail("cuLaunchKernel", 2)
        for kernel in KERNELS:
            nvidia.launch(kernel, us=5)
        nvidia.deliver()

    recording = record(work)
    assert recording.kernels() == {("work", "FakeGpu.launch", "loaded"): 3}
    assert_answered(recording, nvidia, launches=3 + 1)
