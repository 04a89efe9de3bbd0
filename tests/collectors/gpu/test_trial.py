"""doctor tries in a process of its own what a session will need, and makes no device node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.collectors.gpu import libraries as gpu_libraries
from deepcontext.collectors.gpu.amd import AmdGpu
from deepcontext.collectors.gpu.nvidia import NvidiaGpu
from deepcontext.collectors.gpu.trial_program import try_nvidia
from deepcontext.ui.cli import doctor

if TYPE_CHECKING:
    from pathlib import Path

    from kit import FakeGpu


def test_doctor_says_how_many_gpus_a_program_sees(nvidia: FakeGpu) -> None:
    assert nvidia.vendor.name == "nvidia"
    assert NvidiaGpu().probe().reason.startswith("4 GPUs, CUPTI 130001 ")


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ("cuInit=100", "cuInit failed with CUDA error 100"),
        ("cuInit=-1", "trying the driver ended with SIGABRT"),
        ("devices=1", "the driver shows no device ($CUDA_VISIBLE_DEVICES is '7')"),
        ("cuptiSubscribe=15", "cuptiSubscribe failed with CUPTI error 15"),
    ],
)
def test_doctor_says_no_where_nothing_can_work(
    nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch, faults: str, reason: str
) -> None:
    monkeypatch.setenv("FAKE_FAULTS", faults)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    found = NvidiaGpu().probe()
    assert not found.available
    assert found.reason.startswith(reason)
    assert found.reason.endswith("check that nvidia-smi lists a GPU in this environment")
    assert not nvidia.count("subscribed")


def test_a_trial_leaves_nothing_subscribed(nvidia: FakeGpu) -> None:
    files = nvidia.environment()
    found = try_nvidia(files["DEEPCONTEXT_LIBCUDA"], files["DEEPCONTEXT_LIBCUPTI"])
    assert found == {"devices": 4, "library": files["DEEPCONTEXT_LIBCUPTI"]}
    assert not nvidia.count("subscribed")


@pytest.mark.parametrize(
    ("faults", "reason"), [("hipInit=100", "hipInit failed"), ("devices=1", "shows no device")]
)
def test_doctor_says_no_where_hip_does_not_start(
    amd: FakeGpu, monkeypatch: pytest.MonkeyPatch, faults: str, reason: str
) -> None:
    monkeypatch.setenv("FAKE_FAULTS", faults)
    assert amd.vendor.name == "amd"
    found = AmdGpu().probe()
    assert not found.available
    assert reason in found.reason
    assert "rocminfo" in found.reason


@pytest.mark.parametrize(
    ("interface", "faults", "reason"),
    [
        (
            "rocprofiler",
            "rocprofiler_force_configure=16",
            "registering with rocprofiler-sdk failed",
        ),
        ("rocprofiler", "rocprofiler_create_context=40", "rocprofiler_create_context failed"),
        ("roctracer", "roctracer_open_pool_expl=-1", "roctracer_open_pool failed"),
    ],
)
def test_doctor_says_no_where_no_tool_can_register(
    amd: FakeGpu, monkeypatch: pytest.MonkeyPatch, interface: str, faults: str, reason: str
) -> None:
    if amd.vendor.interface != interface:
        return
    monkeypatch.setenv("FAKE_FAULTS", faults)
    found = AmdGpu().probe()
    assert not found.available
    assert reason in found.reason


def test_asking_makes_no_device_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As root, libcuda makes the nodes that are missing when it is loaded."""
    node = tmp_path / "nvidia-uvm"
    monkeypatch.setattr(gpu_libraries, "_NVIDIA_DRIVER_SIGNS", (str(tmp_path),))
    monkeypatch.setattr(gpu_libraries, "_NVIDIA_NODES", (str(node),))
    monkeypatch.setattr(gpu_libraries, "_WINDOWS_NODE", str(tmp_path / "dxg"))
    monkeypatch.delenv("DEEPCONTEXT_LIBCUDA", raising=False)
    loaded: list[str] = []

    def can_load(file: str) -> bool:
        loaded.append(file)
        return False

    monkeypatch.setattr(doctor, "_can_load", can_load)
    found = NvidiaGpu().probe()
    assert not found.available
    assert str(node) in found.reason
    checks = {check.name: check for check in doctor.check_gpu()}
    assert "libcuda.so.1" not in loaded
    assert "the driver has no device nodes here" in checks["NVIDIA driver"].detail
