"""What PyTorch and JAX do at a launch: every function, devices, nodes of graphs that leave no record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record


@pytest.mark.parametrize(
    "function",
    [
        "cuLaunchKernel",
        "cuLaunchKernel_ptsz",
        "cuLaunchKernelEx",
        "cuLaunchKernelEx_ptsz",
        "cuLaunchCooperativeKernel",
        "cuLaunchCooperativeKernel_ptsz",
    ],
)
def test_every_function_that_launches(record: Record, nvidia: FakeGpu, function: str) -> None:
    def work() -> None:
        nvidia.launch_through(function)
        nvidia.launch("k", us=3, count=20)
        nvidia.launch_through("cuLaunchKernel")
        nvidia.deliver()

    recording = record(work)
    assert recording.kernels() == {("work", "FakeGpu.launch", "k"): 20}
    assert recording.report.status == "ran"
    assert_conserved(recording, nvidia)


@pytest.mark.parametrize(
    "function",
    [
        "hipLaunchKernel",
        "hipExtLaunchKernel",
        "hipModuleLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipLaunchCooperativeKernel",
        "hipModuleLaunchCooperativeKernel",
        "hipLaunchKernelExC",
        "hipDrvLaunchKernelEx",
    ],
)
def test_every_function_of_hip_that_launches(record: Record, amd: FakeGpu, function: str) -> None:
    def work() -> None:
        amd.launch_through(function)
        amd.launch("k", us=3, count=20)
        amd.capture_begin()
        amd.launch("in graph", us=3)
        amd.replay(amd.instantiate(amd.capture_end()))
        amd.deliver()

    recording = record(work)
    kernels = recording.kernels()
    assert kernels.pop(("work", "FakeGpu.launch", "k")) == 20
    ((replayed, count),) = kernels.items()
    assert (replayed[-1], count) == ("in graph", 1)
    if amd.vendor.has_graph_nodes:
        assert recording.figure("graph_captured") == 1
    assert recording.report.status == "ran", recording.report.reason
    assert_conserved(recording, amd)


def test_a_function_of_the_host_is_no_launch(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=3)
        for _ in range(50):
            nvidia.host_function()
        nvidia.deliver()

    recording = record(work)
    assert recording.counters["gpu_launches"] == 1
    assert recording.report.status == "ran", recording.report.reason


def test_memory_nodes_of_a_graph_leave_no_record(record: Record, nvidia: FakeGpu) -> None:
    """A launch before the node, which has returned, still counts."""

    def work() -> None:
        nvidia.launch("before", us=1, count=2)
        nvidia.capture_begin()
        nvidia.node("memory")
        nvidia.launch("captured", us=4)
        nvidia.node("memory")
        executable = nvidia.instantiate(nvidia.capture_end())
        for _ in range(3):
            nvidia.replay(executable)
        nvidia.deliver()

    recording = record(work)
    assert recording.counters["gpu_launches"] == 5
    assert recording.figure("graph_captured") == 3
    assert recording.report.status == "ran", recording.report.reason
    assert_conserved(recording, nvidia)


def test_copies_between_devices_are_of_the_device_that_makes_them(
    record: Record, gpu: FakeGpu
) -> None:
    def work() -> None:
        for device in (0, 2):
            gpu.use_device(device)
            gpu.launch("k", us=10 + device, stream=0)
            gpu.copy("PtoP", 4096, us=5)
        gpu.use_device(0)
        gpu.deliver(shuffle=3)

    recording = record(work)
    section = json.loads(recording.profile.sections[f"gpu_{recording.vendor}"])
    busy = {device["device"]: device["busy_ns"] for device in section["devices"]}
    assert busy == {0: 15_000, 2: 17_000}
    name = "Memcpy PtoP" if gpu.vendor.interface == "cupti" else "Memcpy DtoD"
    assert recording.by_path("copy_bytes", count=True) == {("work", "FakeGpu.copy", name): 2}
    assert recording.total("copy_bytes") == 2 * 4096
    assert_conserved(recording, gpu)
