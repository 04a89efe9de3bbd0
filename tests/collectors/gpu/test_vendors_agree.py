"""The same program gives the same tree on every vendor's fake."""

from __future__ import annotations

import contextlib
import threading
from itertools import zip_longest
from typing import TYPE_CHECKING

import kit
import pytest

from deepcontext import _native
from deepcontext.profiler.format.frame import FrameKind
from tests.collectors.gpu.conftest import in_use, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.collectors.gpu.conftest import Recording

# Where vendors differ, as (NVIDIA, AMD). AMD sets memory by a kernel of its run time, and reports
# that kernel's shape instead of the bytes.
DIFFERENCES = (
    ("api cuMemcpyDtoH:", "api hipMemcpy:"),
    ("api cuCtxSynchronize:", "api hipDeviceSynchronize:"),
    (
        "copy Memset: 3 x, 9 us, 12288 B, 3 delays",
        "kernel __amd_rocclr_fillBufferAligned: 3 x, 9 us, 3 delays, 4 blocks",
    ),
)
KINDS = {
    FrameKind.THREAD: "thread",
    FrameKind.PYTHON: "py",
    FrameKind.SCOPE: "scope",
    FrameKind.GPU_API: "api",
    FrameKind.KERNEL: "kernel",
    FrameKind.COPY: "copy",
    FrameKind.GRAPH: "graph",
}
WIDTH = 76


class Training:
    """Launches as a framework makes them: operators in modules, a backward thread, a graph."""

    def __init__(self, gpu: kit.FakeGpu) -> None:
        self.gpu = gpu
        self.optimizer = self.capture()

    def __call__(self) -> None:
        for _ in range(3):
            self.load()
            self.zero_grad()
            self.forward()
            thread = threading.Thread(target=self.backward, name="backward")
            thread.start()
            thread.join()
            self.gpu.replay(self.optimizer)
            self.loss()
        self.gpu.synchronize(us=100)
        self.gpu.deliver(shuffle=11)

    def capture(self) -> int:
        self.gpu.capture_begin()
        with operator("aten::_fused_adam_"):
            self.gpu.launch("fused_adam", us=40, count=2)
        return self.gpu.instantiate(self.gpu.capture_end())

    def load(self) -> None:
        with operator("aten::copy_"):
            self.gpu.copy("HtoD", 1 << 20, us=50)

    def zero_grad(self) -> None:
        with operator("aten::zero_"):
            self.gpu.memset(4096, us=3)

    def forward(self) -> None:
        for name in ("aten::linear", "aten::relu", "aten::linear"):
            with operator(name):
                if name == "aten::linear":
                    self.gpu.launch("gemm_nt", us=100)
                self.gpu.launch("elementwise", us=10)

    def backward(self) -> None:
        with operator("AddmmBackward0"):
            self.gpu.launch("gemm_nn", us=120)
            self.gpu.launch("gemm_tn", us=130)
        with operator("ReluBackward0"):
            self.gpu.launch("elementwise", us=12, stream=9)

    def loss(self) -> None:
        with operator("aten::item"):
            self.gpu.copy("DtoH", 4, us=5, blocking=True)


@contextlib.contextmanager
def operator(name: str) -> Iterator[None]:
    token = _native.enter_scope(name)
    yield
    _native.leave_scope(token)


def train(gpu: kit.FakeGpu) -> None:
    Training(gpu)()


Path_ = tuple[tuple[str, str], ...]


def path_of(recording: Recording, node: int) -> Path_:
    """Kinds and names from the thread down; what pytest itself ran on the way is left out."""
    profile = recording.profile
    frames = [profile.frame(at) for at in profile.tree.path(node)][1:]
    path: list[tuple[str, str]] = []
    for frame in frames:
        name = frame.name.rpartition("<locals>.")[2]
        if (
            name == "_call"
        ):  # the recorded function begins; or was running when a graph was captured
            graphs = [at for at, (kind, _) in enumerate(path) if kind == "graph"]
            del path[graphs[-1] + 1 if graphs else 1 :]
        elif name != "operator":
            path.append((KINDS[FrameKind(frame.kind)], name))
    return tuple(path)


def figures_of(recording: Recording) -> dict[Path_, list[str]]:
    """What was measured at each path; times that are not the device's are counts only."""
    shown: dict[str, tuple[str, Callable[[int], str]]] = {
        "launch_count": ("total", "{} x".format),
        "gpu_time_ns": ("total", lambda ns: f"{ns // 1000} us"),
        "copy_bytes": ("total", "{} B".format),
        "queue_delay_ns": ("count", "{} delays".format),
        "grid_block_count": ("maximum", "{} blocks".format),
        "sync_wait_ns": ("count", "{} waits".format),
    }
    found: dict[Path_, list[str]] = {}
    for metric, (column, text) in shown.items():
        rows = recording.profile.metrics.get(metric)
        if rows is None:
            continue
        values: dict[Path_, list[int]] = {}
        for node, value in zip(rows.node.tolist(), getattr(rows, column).tolist(), strict=True):
            values.setdefault(path_of(recording, node), []).append(value)
        for path, several in values.items():
            value = max(several) if column == "maximum" else sum(several)
            found.setdefault(path, []).append(text(value))
    return found


def tree_of(recording: Recording) -> list[str]:
    """One line a frame, indented by depth."""
    figures = figures_of(recording)
    frames = {path[: depth + 1] for path in figures for depth in range(len(path))}
    return [
        f"{'  ' * (len(path) - 1)}{path[-1][0]} {path[-1][1]}"
        + (f": {', '.join(figures[path])}" if path in figures else "")
        for path in sorted(frames)
    ]


def as_nvidia(lines: list[str]) -> list[str]:
    """Replace AMD's words by NVIDIA's."""
    text = "\n".join(lines)
    for nvidia, amd in DIFFERENCES:
        assert amd in text
        text = text.replace(amd, nvidia)
    return text.split("\n")


@pytest.fixture
def trees(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The tree of the same training on each vendor's fake."""
    found = {}
    for vendor in kit.VENDORS:
        with monkeypatch.context() as patch:
            for gpu in in_use(fakes, vendor, patch):
                found[vendor.interface] = tree_of(recorded(vendor.name, lambda: train(gpu)))  # noqa: B023
    return found


def test_cuda_and_hip_give_the_same_tree(
    trees: dict[str, list[str]], golden: Callable[[str, str], None]
) -> None:
    nvidia, amd = trees["cupti"], trees["rocprofiler"]
    lines = [f"{'fake CUDA, CUPTI':{WIDTH}} | fake HIP, rocprofiler-sdk"]
    for left, right in zip_longest(nvidia, amd, fillvalue=""):
        lines.append(f"{left:{WIDTH}} {'|' if left == right else '!'} {right}".rstrip())
    golden("training-on-two-vendors", "\n".join(lines) + "\n")
    assert as_nvidia(amd) == nvidia


def test_roctracer_differs_in_what_it_is_not_told(trees: dict[str, list[str]]) -> None:
    """It reports neither the kernel of a graph for a record, nor the shape of kernels, nor the size
    of a fill.
    """

    def reduced(lines: list[str]) -> set[str]:
        return {line.replace(", 4 blocks", "") for line in lines}

    sdk, old = reduced(trees["rocprofiler"]), reduced(trees["roctracer"])
    assert {line.strip() for line in old - sdk} == {"kernel fused_adam: 6 x, 240 us, 6 delays"}
    assert not any("blocks" in line for line in trees["roctracer"])
    assert sdk - old
    assert all("graph" in line or line.startswith("  " * 4) for line in sdk - old)
