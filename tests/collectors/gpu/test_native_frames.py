"""Native frames between Python and the launch of GPU work, on simulated devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import native_chain
import pytest

from deepcontext import _native
from deepcontext.collectors.cpu.native_frames import NativeFrames
from deepcontext.collectors.gpu.amd import AmdGpu
from deepcontext.collectors.gpu.nvidia import NvidiaGpu
from deepcontext.collectors.python.frames import PythonFrames
from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    import ctypes

    from kit import FakeGpu

    from deepcontext import Profile
    from tests.collectors.gpu.test_scenarios import Record

pytestmark = pytest.mark.skipif(
    not _native.native_is_supported(), reason="native frames need x86-64 or aarch64"
)
CHAIN = "libnative_chain"
COLLECTORS = (PythonFrames, NativeFrames, NvidiaGpu, AmdGpu)
NS = 5_000


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return native_chain.load(native_chain.build(tmp_path_factory.mktemp("chain")))


def kernels(profile: Profile, *files: str) -> dict[str, list[str]]:
    """Path of each kernel from the launching function on, by the kernel's name."""
    found = {}
    for node in range(len(profile.tree)):
        frame = profile.frame(node)
        if frame.kind is FrameKind.KERNEL:
            path = native_chain.path(profile, node, *files)
            start = path.index("python work") if "python work" in path else 0
            assert frame.name not in found
            found[frame.name] = path[start:]
    return found


def test_native_frames_lead_to_the_launch(record: Record, gpu: FakeGpu, chain: ctypes.CDLL) -> None:
    launch = native_chain.address(gpu.launch_function)

    def work() -> None:
        gpu.launch("from Python", us=5)
        chain.chain_outer(launch, b"from C++", 7, NS)
        chain.chain_thread(launch, b"from a thread", 7, NS)
        gpu.deliver()

    recording = record(work, collectors=COLLECTORS, native=True)
    found = kernels(recording.profile, CHAIN)
    api = [frame for frame in found["from C++"] if frame.startswith("gpu_api ")]
    assert found["from C++"] == [
        "python work",
        *native_chain.native(native_chain.OUTER),
        *api,
        "kernel from C++",
    ]
    assert not any(frame.startswith("native ") for frame in found["from Python"])
    on_thread = found["from a thread"]
    assert on_thread[0].startswith("thread ")
    assert on_thread[-len(api) - 5 :] == [
        *native_chain.native(native_chain.OUTER),
        *api,
        "kernel from a thread",
    ]
    assert recording.total("gpu_time_ns") == 3 * NS


def test_frames_of_the_vendor_and_the_interpreter_are_trimmed(
    record: Record, gpu: FakeGpu, chain: ctypes.CDLL
) -> None:
    def work() -> None:
        chain.chain_outer(native_chain.address(gpu.launch_function), b"k", 7, NS)
        gpu.deliver()

    recording = record(work, collectors=COLLECTORS, native=True)
    (path,) = kernels(recording.profile).values()
    native = [frame for frame in path if frame.startswith("native ")]
    # Between Python and the chain: ctypes and libffi. Below it: nothing.
    assert native[-4:] == native_chain.native(native_chain.OUTER)
    assert not any("fake_" in frame or "deepcontext" in frame for frame in native)
    assert not any("PyEval" in frame or "PyObject" in frame for frame in native)


def test_without_the_option_a_launch_has_no_native_frames(
    record: Record, nvidia: FakeGpu, chain: ctypes.CDLL
) -> None:
    def work() -> None:
        chain.chain_outer(native_chain.address(nvidia.launch_function), b"k", 7, NS)
        nvidia.deliver()

    recording = record(work, collectors=COLLECTORS)
    (path,) = kernels(recording.profile).values()
    assert path[0] == "python work"
    assert not any(frame.startswith("native ") for frame in path)
