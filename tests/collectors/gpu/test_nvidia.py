"""What only CUPTI does: its releases, its errors, its one subscriber, its buffers."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from deepcontext.collectors.gpu import libraries as gpu_libraries
from deepcontext.collectors.gpu.nvidia import NvidiaGpu
from tests.collectors.gpu.test_lifecycle import run
from tests.collectors.gpu.test_scenarios import assert_conserved

if TYPE_CHECKING:
    from pathlib import Path

    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record

RELEASES = (18, 22, 28, 130001, 130101, 130200, 130300, 130401, 130500)


@pytest.mark.parametrize("version", RELEASES)
def test_records_of_every_release(record: Record, nvidia: FakeGpu, version: int) -> None:
    nvidia.version(version)

    def capture() -> int:
        nvidia.capture_begin()
        nvidia.launch("in graph", us=4)
        return nvidia.instantiate(nvidia.capture_end())

    def work() -> None:
        executable = capture()
        for _ in range(50):
            nvidia.launch("k", us=1)
            nvidia.copy("HtoD", 10, us=2)
            nvidia.copy("PtoP", 20, us=2)
            nvidia.memset(30, us=3)
            nvidia.replay(executable)
        nvidia.deliver(shuffle=version)

    recording = record(work)
    assert recording.figure("version") == version
    assert recording.counters["gpu_records_matched"] == 250
    assert recording.total("gpu_time_ns") == 50 * 12_000
    assert recording.total("copy_bytes") == 50 * 60
    assert recording.figure("graph_captured") == 50
    assert recording.total("register_count") % 32 == 0
    assert_conserved(recording, nvidia)


@pytest.mark.parametrize(
    ("function", "code", "advice"),
    [
        ("cuptiGetVersion", 999, "nvidia-smi"),
        ("cuptiGetCallbackName", 999, "names none of the driver's functions"),
        ("cuptiSubscribe", 15, "nvidia-smi lists a GPU"),
        ("cuptiSubscribe", 35, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("cuptiSubscribe", 999, "CUPTI_ERROR_UNKNOWN (999)"),
        ("cuptiActivityRegisterCallbacks", 1, "cuptiActivityRegisterCallbacks failed"),
        ("cuptiActivityEnable:10", 14, "other family"),
        ("cuptiActivityEnable:10", 33, "virtual GPU"),
        ("cuptiActivityEnable:10", 40, "virtual machine"),
        ("cuptiActivityEnable:10", 41, "confidential computing"),
        ("cuptiActivityEnable:10", 4242, "CUPTI error 4242"),
    ],
)
def test_every_refusal_is_explained(
    record: Record, nvidia: FakeGpu, function: str, code: int, advice: str
) -> None:
    nvidia.fail(function, code)
    recording = record(lambda: nvidia.launch("k", us=1))
    assert recording.report.status == "unavailable"
    assert advice in recording.report.reason
    assert any("GPU work is missing" in note for note in recording.profile.trust.notes)
    assert not nvidia.count("subscribed")


@pytest.mark.parametrize("version", [28, 130001, 130101, 130200])
def test_another_tool_in_the_way_is_named(record: Record, nvidia: FakeGpu, version: int) -> None:
    nvidia.version(version)
    nvidia.hold("Nsight Systems")
    recording = record(lambda: nvidia.launch("k", us=1))
    assert recording.report.status == "unavailable"
    assert "another tool holds CUPTI" in recording.report.reason
    assert ("'Nsight Systems'" in recording.report.reason) == (version >= 130000)


def test_a_newer_library_is_shared_with_another_tool(record: Record, nvidia: FakeGpu) -> None:
    nvidia.version(130401)
    nvidia.hold("torch.profiler", sharing=True)

    def work() -> None:
        nvidia.launch("k", us=1, count=100)
        nvidia.copy("DtoH", 5, us=1)
        nvidia.deliver(shuffle=2)

    recording = record(work)
    assert recording.report.status == "ran"
    assert recording.figure("is_shared") == 1
    assert recording.counters["gpu_records_matched"] == 101
    assert_conserved(recording, nvidia)


@pytest.mark.parametrize("refused", ["cuptiSubscribe", "cuptiActivityRegisterCallbacks"])
def test_a_tool_of_the_newer_functions_is_joined_there(
    record: Record, nvidia: FakeGpu, refused: str
) -> None:
    """The two families of CUPTI's functions cannot be mixed: the second gets NOT_COMPATIBLE."""
    nvidia.version(130401)
    nvidia.fail(refused, 14)

    def work() -> None:
        nvidia.launch("k", us=1, count=10)
        nvidia.deliver()

    recording = record(work)
    assert recording.report.status == "ran"
    assert recording.figure("is_shared") == 1
    assert recording.counters["gpu_records_matched"] == 10


def test_a_tool_that_takes_the_records_is_not_passed_over(record: Record, nvidia: FakeGpu) -> None:
    """Buffers belong to the process: torch.profiler may replace those of deepcontext."""

    def work() -> None:
        nvidia.launch("recorded", us=1, count=10)
        nvidia.deliver()
        nvidia.take_over()
        nvidia.launch("taken", us=1, count=90)
        nvidia.deliver()

    recording = record(work)
    assert recording.counters["gpu_records_matched"] == 10
    assert "90 of 100 launches of GPU work left no record" in recording.report.reason
    assert "another profiler (torch.profiler" in recording.report.reason


def test_a_tool_that_takes_all_records_makes_an_error(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.take_over()
        nvidia.launch("taken", us=1, count=90)
        nvidia.deliver()

    recording = record(work)
    assert recording.counters["gpu_errors"] == 1
    assert "another profiler may have taken the records (torch.profiler" in recording.report.reason


def test_doctor_says_what_will_be_collected(nvidia: FakeGpu) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", "doctor", "--json"],
        env={**os.environ, **nvidia.environment()},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    checks = json.loads(done.stdout)["checks"]
    (check,) = (each for each in checks if each["name"] == "nvidia")
    assert check["is_available"]
    assert "kernels, copies, memsets, graphs, waiting and idle time" in check["detail"]


def test_a_newer_library_that_is_not_shared_names_its_holder(
    record: Record, nvidia: FakeGpu
) -> None:
    nvidia.version(130401)
    nvidia.hold("ncu", sharing=False)
    recording = record(lambda: None)
    assert "'ncu'" in recording.report.reason


@pytest.mark.parametrize(("kind", "what"), [(1, "copies"), (2, "memsets"), (17, "overhead")])
def test_a_refused_kind_is_named_and_the_rest_goes_on(
    record: Record, nvidia: FakeGpu, kind: int, what: str
) -> None:
    nvidia.fail(f"cuptiActivityEnable:{kind}", 27)

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()

    recording = record(work)
    assert recording.report.status == "degraded"
    assert what in recording.report.reason
    assert recording.counters["gpu_records_matched"] == 1


@pytest.mark.parametrize(("kind", "others"), [(1, 30), (2, 20)])
def test_launches_of_a_refused_kind_are_not_held_against_another_tool(
    record: Record, nvidia: FakeGpu, kind: int, others: int
) -> None:
    nvidia.fail(f"cuptiActivityEnable:{kind}", 27)

    def work() -> None:
        nvidia.launch("k", us=1, count=10)
        for _ in range(10):
            nvidia.copy("HtoD", 64, us=1)
            nvidia.memset(64, us=1)
            nvidia.memset(64, us=1)
        nvidia.deliver()

    recording = record(work)
    assert recording.figure("launches") == recording.figure("answered") == others
    assert "left no record" not in recording.report.reason
    assert "are not recorded: CUPTI refuses them" in recording.report.reason


def test_refused_graph_callbacks_leave_kernels_under_the_replay(
    record: Record, nvidia: FakeGpu
) -> None:
    nvidia.fail("cuptiEnableCallback:3", 27)

    def work() -> None:
        nvidia.capture_begin()
        nvidia.launch("k", us=1)
        nvidia.replay(nvidia.instantiate(nvidia.capture_end()))
        nvidia.deliver()

    recording = record(work)
    assert "appear under the replay only" in recording.report.reason
    assert recording.figure("graph_launched") == 1
    assert_conserved(recording, nvidia)


def test_a_record_names_the_node_it_was_captured_as(record: Record, nvidia: FakeGpu) -> None:
    """From 13.4 on, records carry it: a clone that was not seen does not matter."""
    nvidia.version(130401)
    nvidia.fail("cuptiGetGraphNodeId", 0)

    def work() -> None:
        nvidia.capture_begin()
        nvidia.launch("k", us=1)
        graph = nvidia.capture_end()
        nvidia.fail("cuptiGetGraphNodeId", 1)  # clones stay unknown
        executable = nvidia.instantiate(graph)
        nvidia.replay(executable)
        nvidia.deliver()

    assert record(work).figure("graph_captured") == 1


def test_a_buffer_completed_after_the_unsubscribe_is_taken_back(
    record: Record, nvidia: FakeGpu
) -> None:
    def work() -> None:
        nvidia.hold_buffers(holding=True)
        nvidia.launch("k", us=1, count=10)
        nvidia.deliver()

    recording = record(work)
    assert recording.counters["gpu_records_received"] == 0
    assert nvidia.count("buffers_out") == 1
    nvidia.hold_buffers(holding=False)  # the fake ends the process where CUPTI may be asked no more
    assert nvidia.count("buffers_out") == 0


def test_the_pool_has_a_hard_limit(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPCONTEXT_GPU_BUFFER_BYTES", "4096")
    monkeypatch.setenv("DEEPCONTEXT_GPU_POOL_BYTES", "16384")

    def work() -> None:
        nvidia.hold_buffers(holding=True)  # so that none comes back in time
        nvidia.launch("k", us=1, count=1000)
        nvidia.deliver()
        nvidia.hold_buffers(holding=False)

    recording = record(work)
    assert recording.figure("declined_buffers") > 0
    assert recording.counters["gpu_records_dropped"] == 1000 - 4 * (4096 // 216)
    assert_conserved(recording, nvidia)


@pytest.mark.parametrize("is_refused", [False, True])
def test_the_memory_that_cupti_takes_on_the_device_is_bounded(
    record: Record, nvidia: FakeGpu, *, is_refused: bool
) -> None:
    limits = []
    nvidia.fail("cuptiActivitySetAttribute", 27 * is_refused)

    def work() -> None:
        limits.append(nvidia.count("device_pool_limit"))
        nvidia.launch("k", us=1)
        nvidia.deliver()

    assert record(work).report.status == "ran"
    assert limits == [250 if is_refused else 64]
    assert nvidia.count("device_pool_limit") == 250  # another tool finds CUPTI as it was


def test_forty_threads_have_a_buffer_each(record: Record, nvidia: FakeGpu) -> None:
    """CUPTI fills a buffer for each thread and hands it over when it is full, or at a flush."""

    def work() -> None:
        nvidia.launch("k", us=1, count=4000)
        nvidia.deliver(threads=40)

    recording = record(work)
    assert recording.figure("declined_buffers") == 0
    assert recording.counters["gpu_records_matched"] == 4000


@pytest.mark.parametrize("version", [26, 28])
def test_only_a_library_that_survives_it_is_refused_a_buffer(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Before 12.9 (API 27), CUPTI crashes when it is given no buffer."""
    monkeypatch.setenv("DEEPCONTEXT_GPU_BUFFER_BYTES", "4096")
    monkeypatch.setenv("DEEPCONTEXT_GPU_POOL_BYTES", "4096")
    nvidia.version(version)

    def work() -> None:
        nvidia.hold_buffers(holding=True)
        nvidia.launch("k", us=1, count=100)
        nvidia.deliver()
        nvidia.hold_buffers(holding=False)

    recording = record(work)
    assert (recording.figure("declined_buffers") > 0) == (version >= 27)
    assert (recording.counters["gpu_records_dropped"] > 0) == (version >= 27)
    assert_conserved(recording, nvidia)


def test_a_broken_buffer_is_counted(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.fail("cuptiActivityGetNextRecord", 1)

    recording = record(work)
    assert recording.figure("broken_buffers") == 1
    assert recording.counters["gpu_errors"] == 1


def test_a_flush_that_fails_is_said(record: Record, nvidia: FakeGpu) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        nvidia.fail("cuptiActivityFlushAll", 999)

    recording = record(work)
    assert recording.report.status == "degraded"
    assert "cuptiActivityFlushAll failed" in recording.report.reason
    nvidia.fail("cuptiActivityFlushAll", 0)


def test_probe_names_the_library_that_would_be_used(nvidia: FakeGpu) -> None:
    found = NvidiaGpu().probe()
    assert found.available
    assert nvidia.environment()["DEEPCONTEXT_LIBCUPTI"] in found.reason


def test_probe_says_that_the_driver_cannot_be_loaded(
    nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEEPCONTEXT_LIBCUDA", str(tmp_path / "libcuda.so.1"))
    found = NvidiaGpu().probe()
    assert not found.available
    assert "no NVIDIA driver" in found.reason
    assert "nvidia-smi" in found.reason


def test_probe_says_that_cupti_is_missing_or_foreign(
    nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEEPCONTEXT_LIBCUPTI", str(tmp_path / "libcupti.so.13"))
    found = NvidiaGpu().probe()
    assert "CUPTI cannot be loaded from" in found.reason
    monkeypatch.setenv("DEEPCONTEXT_LIBCUPTI", nvidia.environment()["DEEPCONTEXT_LIBCUDA"])
    found = NvidiaGpu().probe()
    assert "lacks cuptiGetVersion" in found.reason


def test_probe_without_a_gpu_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_libraries, "_NVIDIA_DRIVER_SIGNS", ("/no/such/file",))
    found = NvidiaGpu().probe()
    assert not found.available
    assert "no NVIDIA driver on this machine" in found.reason


def test_a_wheel_of_cupti_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "nvidia" / "cu13" / "lib" / "libcupti.so.13"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(_native, "gpu_mapped_libraries", lambda stem: [])
    monkeypatch.setattr(gpu_libraries, "_namespace_folders", lambda package: [tmp_path / "nvidia"])
    found = gpu_libraries.find_cupti()
    assert found.path == str(library)
    assert "nvidia-cuda-cupti" in found.origin


def test_the_release_of_jaxs_plugin_is_looked_for_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for part, major in (("cu13/lib", 13), ("cuda_cupti/lib", 12)):
        library = tmp_path / "nvidia" / part / f"libcupti.so.{major}"
        library.parent.mkdir(parents=True)
        library.touch()
    (tmp_path / "jax_cuda12_plugin.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    monkeypatch.setattr(_native, "gpu_mapped_libraries", lambda stem: [])
    monkeypatch.setattr(gpu_libraries, "_namespace_folders", lambda package: [tmp_path / "nvidia"])
    assert gpu_libraries.find_cupti().path.endswith("libcupti.so.12")


def test_a_copy_that_is_loaded_later_is_said(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = ["/a/libcupti.so.13"]
    monkeypatch.setattr(
        _native,
        "gpu_mapped_libraries",
        lambda stem: [*copies] if "cupti" in stem else ["libcuda.so"],
    )

    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()
        copies.append("/b/libcupti.so.12")

    report = record(work).report
    assert report.status == "degraded"
    assert (
        "another copy of CUPTI was loaded during the session (/b/libcupti.so.12)" in report.reason
    )


def test_two_copies_of_cupti_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = ["/a/libcupti.so.13", "/b/libcupti.so.12"]
    monkeypatch.setattr(_native, "gpu_mapped_libraries", lambda stem: copies)
    found = gpu_libraries.find_cupti()
    assert found.path == copies[0]
    assert "two copies" in found.warning


def test_a_tool_that_comes_later_finds_room(nvidia: FakeGpu, fakes: Path, tmp_path: Path) -> None:
    """With a library and a driver that have it, and not beside PyTorch, whose Kineto would be refused."""
    program = """
        gpu.version(130401)
        deepcontext.start()
        gpu.launch("k", us=1)
        gpu.deliver()
        profile = deepcontext.stop()
        details = next(c for c in profile.trust.collectors if c.name == vendor.name).details
        print(details["is_shared"], profile.trust.counters["gpu_records_matched"])
        """
    newer = {"FAKE_FAULTS": "driver_version=13030"}
    assert run(nvidia, program, **newer) == "1 1\n"
    assert run(nvidia, program) == "0 1\n"
    torch = tmp_path / "libtorch_cpu.so"
    torch.write_bytes((fakes / "libfake_clock.so").read_bytes())
    beside_torch = f"        import ctypes; ctypes.CDLL({str(torch)!r})\n" + program
    assert run(nvidia, beside_torch, **newer) == "0 1\n"


@pytest.mark.parametrize(
    "refused",
    ["cuptiSubscribe_v2", "cuptiActivityRegisterCallbacks_v2", "cuptiActivityEnable_v2"],
)
def test_newer_functions_that_are_refused_are_replaced_by_the_older(
    nvidia: FakeGpu, refused: str
) -> None:
    program = f"""
        gpu.version(130401)
        gpu.fail({refused!r}, 27)
        deepcontext.start()
        gpu.launch("k", us=1)
        gpu.deliver()
        profile = deepcontext.stop()
        report = next(c for c in profile.trust.collectors if c.name == vendor.name)
        print(report.status, report.details.get("is_shared"))
        print(profile.trust.counters.get("gpu_records_matched"))
        """
    assert run(nvidia, program, FAKE_FAULTS="driver_version=13030") == "ran 0\n1\n"


@pytest.fixture
def older_cupti(
    nvidia: FakeGpu, fakes: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Path:
    """Two releases of libcupti: the newer one cannot reach the driver, the older one is the fake's."""
    newer, older = (tmp_path / "lib64" / f"libcupti.so.{major}" for major in (13, 12))
    newer.parent.mkdir()
    file = nvidia.vendor.profiler
    newer.write_bytes((fakes / file).read_bytes())
    older.symlink_to(fakes / file)
    ctypes.CDLL(str(newer)).fake_fail(b"cuptiSubscribe", 15)
    monkeypatch.delenv("DEEPCONTEXT_LIBCUPTI")
    monkeypatch.setattr(gpu_libraries, "_namespace_folders", lambda package: [])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    return older


def test_a_library_that_cannot_reach_the_driver_is_replaced_by_an_older_one(
    record: Record, nvidia: FakeGpu, older_cupti: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "gpu_mapped_libraries", lambda stem: [])

    def work() -> None:
        nvidia.launch("k", us=1, count=3)
        nvidia.deliver()

    recording = record(work)
    newer = older_cupti.with_name("libcupti.so.13")
    assert recording.report.status == "ran"
    assert recording.report.details["library"] == str(older_cupti)
    assert recording.counters["gpu_records_matched"] == 3
    note = f"'{newer}' cannot reach the driver, so '{older_cupti}' is used"
    assert note in recording.profile.trust.notes


def test_doctor_tries_an_older_library(
    nvidia: FakeGpu, older_cupti: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not nvidia.count("subscribed")
    monkeypatch.setattr(_native, "gpu_mapped_libraries", lambda stem: [])
    monkeypatch.setenv("FAKE_FAULTS", "cuptiSubscribe:libcupti.so.13=15")
    found = NvidiaGpu().probe()
    assert found.available
    assert f"so '{older_cupti}' is used" in found.reason


def test_below_mps_idle_time_is_the_clients_own(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        nvidia.launch("k", us=1)
        nvidia.deliver()

    assert not any("MPS" in note for note in record(work).profile.trust.notes)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    assert any("MPS" in note for note in record(work).profile.trust.notes)
