"""CUPTI starts inside the program's own initialisation of CUDA, never before."""

from __future__ import annotations

import importlib.util
import json
import os
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.profiled import profiled as run_profiled

if TYPE_CHECKING:
    from pathlib import Path

    from kit import FakeGpu

    import deepcontext

FAKES = os.path.join(os.path.dirname(__file__), "..", "..", "fakes")  # noqa: PTH118, PTH120
PREAMBLE = """
import os, sys
sys.path.insert(0, {fakes!r})
import kit
from pathlib import Path
gpu = kit.FakeGpu(Path({folder!r}), kit.CUPTI, initialize=False)

def is_subscribed():
    return bool(gpu.count("subscribed"))
"""


def profiled(
    nvidia: FakeGpu, folder: Path, source: str, **environment: str
) -> tuple[str, deepcontext.Profile]:
    """Profile a program whose driver is loaded, but not started; its output and its profile."""
    preamble = PREAMBLE.format(fakes=FAKES, folder=str(nvidia._folder))
    text, variables = preamble + textwrap.dedent(source), {**nvidia.environment(), **environment}
    done = run_profiled(folder, text, "-q", environment=variables)
    return done.stdout, done.profile


def report_of(profile: deepcontext.Profile):  # type: ignore[no-untyped-def]  # noqa: ANN201
    return next(each for each in profile.trust.collectors if each.name == "nvidia")


@pytest.fixture
def frameworks(tmp_path: Path) -> str:
    """A folder with a cupy that does nothing, and a torch that is built for CUDA."""
    folder = tmp_path / "frameworks"
    (folder / "torch" / "cuda").mkdir(parents=True)
    (folder / "cupy.py").write_text("", encoding="utf-8")
    version = "import types\nversion = types.SimpleNamespace(cuda='13.0', hip=None)\n"
    (folder / "torch" / "__init__.py").write_text(version + "from torch import cuda\n", "utf-8")
    (folder / "torch" / "cuda" / "__init__.py").write_text("_queued_calls = []\n", "utf-8")
    return str(folder)


def test_a_program_that_uses_no_gpu_never_loads_cupti(
    nvidia: FakeGpu, frameworks: str, tmp_path: Path
) -> None:
    code = (
        f"import sys; sys.path.insert(0, {frameworks!r}); import cupy; "
        "print(any('libcupti' in line or 'libcuda' in line for line in open('/proc/self/maps')))"
    )
    done = run_profiled(tmp_path, code, "-q", environment=nvidia.environment())
    assert done.stdout == "False\n", done.stderr
    report = report_of(done.profile)
    assert (report.status, report.reason) == ("off", "the program used no NVIDIA GPU")


def test_the_first_launch_after_the_initialisation_is_recorded(
    nvidia: FakeGpu, frameworks: str, tmp_path: Path
) -> None:
    source = f"""
        sys.path.insert(0, {frameworks!r})
        import cupy
        before = is_subscribed()
        gpu.initialize()
        print(before, is_subscribed())
        gpu.launch("first", us=1, count=20)
        gpu.deliver()
        """
    output, profile = profiled(nvidia, tmp_path, source)
    assert output == "False True\n"
    assert report_of(profile).status == "ran"
    assert profile.trust.counters["gpu_records_matched"] == 20


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
def test_cupti_starts_when_jax_first_asks_for_a_device(nvidia: FakeGpu, tmp_path: Path) -> None:
    """JAX starts its back ends then, and CUDA's plugin calls `cuInit`."""
    source = """
        import jax
        from jax._src import xla_bridge
        from jaxlib import xla_client

        def start_plugin():
            gpu.initialize()
            return xla_client.make_cpu_client()

        xla_bridge.register_backend_factory("cuda_of_the_fake", start_plugin)
        before = is_subscribed()
        jax.devices("cuda_of_the_fake")
        print(before, is_subscribed())
        gpu.launch("first", us=1, count=20)
        gpu.deliver()
        """
    output, profile = profiled(nvidia, tmp_path, source)
    assert output == "False True\n"
    assert report_of(profile).status == "ran"
    assert profile.trust.counters["gpu_records_matched"] == 20


def test_a_partition_of_a_gpu_is_a_device_with_its_own_multiprocessors(
    nvidia: FakeGpu, frameworks: str, tmp_path: Path
) -> None:
    """A process sees one partition (MIG), as device 0; its UUID is in the variable alone."""
    source = f"""
        sys.path.insert(0, {frameworks!r})
        import cupy
        gpu.initialize()
        print(gpu.visible_devices())
        gpu.launch("k", us=5, count=20)
        gpu.deliver()
        """
    output, profile = profiled(
        nvidia, tmp_path, source, CUDA_VISIBLE_DEVICES="MIG-5c89a0b1-29fd-5b9c-8f0a-0123456789ab"
    )
    assert output == "1\n"
    assert report_of(profile).status == "ran"
    (device,) = json.loads(profile.sections["gpu_nvidia"])["devices"]
    assert (device["device"], device["multiprocessor_count"]) == (0, 16)
    assert device["name"] == "NVIDIA H100 80GB HBM3"
    assert device["busy_ns"] == 20 * 5_000


def test_devices_that_are_hidden_after_the_import_stay_hidden(
    nvidia: FakeGpu, frameworks: str, tmp_path: Path
) -> None:
    source = f"""
        sys.path.insert(0, {frameworks!r})
        import cupy
        os.environ["CUDA_VISIBLE_DEVICES"] = "1,2"
        gpu.initialize()
        print(gpu.visible_devices())
        """
    output, _ = profiled(nvidia, tmp_path, source)
    assert output == "2\n"


def test_a_child_that_is_forked_before_cuda_is_used_can_use_it(
    nvidia: FakeGpu, frameworks: str, tmp_path: Path
) -> None:
    source = f"""
        sys.path.insert(0, {frameworks!r})
        import cupy
        child = os.fork()
        if child == 0:
            os._exit(0 if gpu.initialize() == 0 and gpu.visible_devices() == 4 else 7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        gpu.initialize()
        gpu.launch("parent", us=1, count=3)
        gpu.deliver()
        """
    output, profile = profiled(nvidia, tmp_path, source)
    assert output == "0\n"
    assert profile.trust.counters["gpu_records_matched"] == 3


def test_a_session_in_a_child_that_was_forked_before_cuda_was_used(
    nvidia: FakeGpu, tmp_path: Path
) -> None:
    source = """
        child = os.fork()
        if child == 0:
            import deepcontext
            deepcontext.start()
            gpu.initialize()
            gpu.launch("child", us=1, count=3)
            gpu.deliver()
            profile = deepcontext.stop()
            os._exit(profile.trust.counters["gpu_records_matched"])
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    output, _ = profiled(nvidia, tmp_path, source)
    assert output == "3\n"


def test_a_process_that_inherits_the_library_is_left_alone(nvidia: FakeGpu, tmp_path: Path) -> None:
    source = """
        import ctypes, subprocess
        code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cuInit(0))"
        driver = os.environ["DEEPCONTEXT_LIBCUDA"]
        print(ctypes.CDLL(None).getenv(b"CUDA_INJECTION64_PATH") != 0)
        subprocess.run([sys.executable, "-S", "-c", code, driver], check=True)
        """
    output, _ = profiled(nvidia, tmp_path, source)
    assert sorted(output.split()) == ["0", "True"]


def test_the_program_does_not_see_the_variable(nvidia: FakeGpu, tmp_path: Path) -> None:
    output, _ = profiled(nvidia, tmp_path, 'print("CUDA_INJECTION64_PATH" in os.environ)')
    assert output == "False\n"


def test_another_tools_library_stays(nvidia: FakeGpu, frameworks: str, tmp_path: Path) -> None:
    source = f"""
        import ctypes
        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_char_p
        print(getenv(b"CUDA_INJECTION64_PATH").decode())
        sys.path.insert(0, {frameworks!r})
        import cupy
        gpu.initialize()
        gpu.launch("k", us=1, count=3)
        gpu.deliver()
        """
    output, profile = profiled(nvidia, tmp_path, source, CUDA_INJECTION64_PATH="/other/tool.so")
    assert output == "/other/tool.so\n"
    assert profile.trust.counters["gpu_records_matched"] == 3


def test_a_driver_that_calls_no_library_is_noticed(nvidia: FakeGpu, tmp_path: Path) -> None:
    source = """
        gpu.initialize()
        gpu.launch("before", us=1, count=3)
        """
    _, profile = profiled(nvidia, tmp_path, source, FAKE_FAULTS="injection=1")
    report = report_of(profile)
    assert report.status == "degraded"
    assert "without calling the profiler's injection library" in report.reason


def test_torch_tells_when_the_driver_does_not(
    nvidia: FakeGpu, frameworks: str, tmp_path: Path
) -> None:
    source = f"""
        sys.path.insert(0, {frameworks!r})
        import torch
        gpu.initialize()
        for call, _ in torch.cuda._queued_calls:  # as torch does after it has initialised CUDA
            call()
        gpu.launch("k", us=1, count=3)
        gpu.deliver()
        """
    _, profile = profiled(nvidia, tmp_path, source, FAKE_FAULTS="injection=1")
    assert profile.trust.counters["gpu_records_matched"] == 3


def test_a_refusal_inside_the_initialisation_is_said(nvidia: FakeGpu, tmp_path: Path) -> None:
    source = """
        gpu.fail("cuptiSubscribe", 35)
        gpu.initialize()
        """
    _, profile = profiled(nvidia, tmp_path, source)
    report = report_of(profile)
    assert report.status == "unavailable"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in report.reason


def test_the_next_library_is_tried_inside_the_initialisation(
    nvidia: FakeGpu, tmp_path: Path
) -> None:
    newer, older = (tmp_path / "lib64" / f"libcupti.so.{major}" for major in (13, 12))
    newer.parent.mkdir()
    file = nvidia._folder / nvidia.vendor.profiler
    newer.write_bytes(file.read_bytes())
    older.symlink_to(file)
    source = f"""
        import ctypes
        ctypes.CDLL({str(newer)!r}).fake_fail(b"cuptiSubscribe", 15)
        gpu.initialize()
        gpu.launch("k", us=1, count=3)
        gpu.deliver()
        """
    _, profile = profiled(
        nvidia, tmp_path, source, DEEPCONTEXT_LIBCUPTI="", CUDA_HOME=str(tmp_path)
    )
    report = report_of(profile)
    assert report.details["library"] == str(older)
    assert profile.trust.counters["gpu_records_matched"] == 3
    assert any(f"so '{older}' is used" in note for note in profile.trust.notes)
