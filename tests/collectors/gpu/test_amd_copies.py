"""AMD: which copy of a library is used, other tools that register, and kernels without a launch."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from deepcontext.collectors.gpu import libraries
from tests.collectors.gpu.test_lifecycle import run

if TYPE_CHECKING:
    from pathlib import Path

    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording
    from tests.collectors.gpu.test_scenarios import Record

SDK = "librocprofiler-sdk.so"
RCCL = "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)"
REPORT = """
        profile = deepcontext.stop()
        report = next(c for c in profile.trust.collectors if c.name == "amd")
        print(report.status)
        print(report.reason)
        print(" | ".join(profile.trust.notes))
        """


@pytest.mark.parametrize("name", [SDK, f"{SDK}.1"])
def test_the_copy_of_pytorchs_wheel_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    folders = [tmp_path / "torch", tmp_path / "rocm"]
    for folder in folders:
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / name).touch()
    monkeypatch.setattr(_native, "gpu_mapped_libraries", lambda stem: [])
    monkeypatch.delenv("DEEPCONTEXT_LIBROCPROFILER", raising=False)
    monkeypatch.setattr(libraries, "_torch_folders", lambda: [folders[0]])
    monkeypatch.setenv("ROCM_PATH", str(folders[1]))
    assert libraries.find_rocprofiler().path == str(folders[0] / "lib" / name)
    monkeypatch.setattr(libraries, "_torch_folders", list)
    assert libraries.find_rocprofiler().path == str(folders[1] / "lib" / name)


def test_two_copies_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = [f"/torch/lib/{SDK}", f"/opt/rocm/lib/{SDK}.1"]
    monkeypatch.setattr(_native, "gpu_mapped_libraries", lambda stem: copies)
    monkeypatch.delenv("DEEPCONTEXT_LIBROCPROFILER", raising=False)
    found = libraries.find_rocprofiler()
    assert found.path == copies[0]
    assert f"two copies of {SDK} are loaded" in found.warning


def test_a_copy_that_is_loaded_later_is_said(
    record: Record, sdk: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = [f"/opt/rocm/lib/{SDK}.1"]
    monkeypatch.setattr(
        _native, "gpu_mapped_libraries", lambda stem: [*copies] if stem == SDK else []
    )

    def work() -> None:
        sdk.launch("k", us=1)
        sdk.deliver()
        copies.append(f"/torch/lib/{SDK}")

    report = record(work).report
    assert report.status == "degraded"
    assert f"another copy of {SDK} was loaded during the session (/torch/lib/{SDK})" in (
        report.reason
    )


def torch_with_memory(size_bytes: int) -> ModuleType:
    """A torch for ROCm that has taken memory of its second GPU."""
    torch = ModuleType("torch")
    torch.version = SimpleNamespace(hip="7.0", cuda=None)  # type: ignore[attr-defined]
    torch.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        is_initialized=lambda: True,
        device_count=lambda: 2,
        max_memory_allocated=lambda device: size_bytes * device,
    )
    return torch


@pytest.mark.parametrize("size_bytes", [0, 512])
def test_a_used_gpu_without_a_launch_is_an_error(
    record: Record, amd: FakeGpu, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    """As where the program uses another copy of the library."""
    monkeypatch.setitem(sys.modules, "torch", torch_with_memory(size_bytes))
    recording = record(lambda: None)
    assert recording.counters["gpu_errors"] == (size_bytes > 0)
    assert recording.report.status == ("degraded" if size_bytes else "ran")
    assert ("used the GPU and not one launch was seen" in recording.report.reason) == (
        size_bytes > 0
    )


def test_a_used_gpu_with_launches_is_none(
    record: Record, amd: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with_memory(512))

    def work() -> None:
        amd.launch("k", us=1)
        amd.deliver()

    assert record(work).counters["gpu_errors"] == 0


def test_torch_profiler_after_the_registration_is_said_to_lack_the_gpu(
    record: Record, sdk: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_profiler = pytest.importorskip("torch.autograd.profiler")
    monkeypatch.setattr(torch_profiler, "_prepare_profiler", lambda *_: sdk.profiler_begin())
    monkeypatch.setattr(torch_profiler, "_disable_profiler", sdk.profiler_end)

    def work() -> None:
        sdk.launch("before", us=1, count=10)
        torch_profiler._prepare_profiler(None, {"ProfilerActivity.CUDA"})
        sdk.launch("during", us=1, count=20)
        torch_profiler._disable_profiler()
        sdk.deliver()

    recording = record(work)
    assert recording.report.status == "ran"
    assert recording.counters["gpu_records_matched"] == 30
    assert any("torch.profiler may lack GPU work" in note for note in recording.profile.trust.notes)


def test_torch_profiler_before_the_registration_is_named(sdk: FakeGpu) -> None:
    source = (
        """
        gpu.profiler_begin()
        deepcontext.start()
        gpu.launch("k", us=1)
        gpu.deliver()
        """
        + REPORT
    )
    status, reason, _ = run(sdk, source).splitlines()
    assert status == "unavailable"
    assert "another tool (torch.profiler) registered" in reason


def test_kernels_of_rccl_without_a_correlation_id_are_communication(
    record: Record, roctracer: FakeGpu
) -> None:
    def work() -> None:
        roctracer.launch(RCCL, us=7)
        roctracer.launch("of the program", us=5)
        roctracer.launch("gemm", us=3)
        roctracer.lose_correlation(2)
        roctracer.deliver()

    recording: Recording = record(work)
    profile = recording.profile
    rows = profile.metrics["gpu_time_ns"]
    above = {
        tuple(profile.frame(at).name for at in profile.tree.path(node)[-2:]): total
        for node, total in zip(rows.node.tolist(), rows.total.tolist(), strict=True)
    }
    assert above["communication between GPUs (RCCL)", RCCL] == 7_000
    assert above["GPU work of unknown origin", "of the program"] == 5_000
    assert above["FakeGpu.launch", "gemm"] == 3_000
    assert recording.counters["gpu_records_unmatched"] == 1
    assert any(
        "1 kernels of RCCL have no known call path" in n for n in recording.profile.trust.notes
    )
    assert "left no record" not in recording.report.reason
