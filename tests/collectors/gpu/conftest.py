"""A simulated GPU of each vendor, and sessions recorded with it."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deepcontext
from deepcontext.collectors.gpu.amd import AmdGpu
from deepcontext.collectors.gpu.nvidia import NvidiaGpu
from deepcontext.collectors.python.frames import PythonFrames
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.session_manager import SessionManager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deepcontext.profiler.recording.collector import Collector

# The kit and the tests' helpers are plain files; `tests` is not a package.
for _folder in (Path(__file__).resolve().parents[2] / "fakes", Path(__file__).resolve().parents[3]):
    sys.path.insert(0, str(_folder))
import kit  # noqa: E402

COLLECTORS = {"nvidia": NvidiaGpu, "amd": AmdGpu}


@pytest.fixture(scope="session")
def fakes() -> Path:
    """Folder of the compiled fakes; another where `mutants.py` changes the sources."""
    other = os.environ.get("DEEPCONTEXT_FAKES")
    return kit.build(Path(other)) if other else kit.built()


@functools.cache
def load(folder: Path, vendor: kit.Vendor) -> kit.FakeGpu:
    return kit.FakeGpu(folder, vendor)


def in_use(
    fakes: Path, vendor: kit.Vendor, monkeypatch: pytest.MonkeyPatch
) -> Iterator[kit.FakeGpu]:
    """Let this process use a vendor's device; nothing may be left running at its library."""
    device = load(fakes, vendor)
    device.reset()
    for variable, value in device.environment().items():
        monkeypatch.setenv(variable, value)
    yield device
    assert not device.count("subscribed")
    assert not device.count("services")


def device_of(*vendors: kit.Vendor) -> Callable[..., Iterator[kit.FakeGpu]]:
    """Make a fixture that is a device of each vendor in turn."""

    @pytest.fixture(params=vendors, ids=[vendor.interface for vendor in vendors])
    def device(
        request: pytest.FixtureRequest, fakes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[kit.FakeGpu]:
        yield from in_use(fakes, request.param, monkeypatch)

    return device


gpu = device_of(*kit.VENDORS)
gpu_with_graph_nodes = device_of(kit.CUPTI, kit.ROCPROFILER)
nvidia = device_of(kit.CUPTI)
amd = device_of(kit.ROCPROFILER, kit.ROCTRACER)
sdk = device_of(kit.ROCPROFILER)
roctracer = device_of(kit.ROCTRACER)
_DEVICES = ("gpu", "gpu_with_graph_nodes", "nvidia", "amd", "sdk", "roctracer")


@dataclass(frozen=True)
class Recording:
    """A profile with the questions that tests of device work ask."""

    profile: deepcontext.Profile
    vendor: str

    @property
    def counters(self) -> dict[str, int]:
        return dict(self.profile.trust.counters)

    @property
    def report(self):  # type: ignore[no-untyped-def]  # noqa: ANN201
        return next(c for c in self.profile.trust.collectors if c.name == self.vendor)

    def figure(self, name: str) -> int:
        """A figure of the collector's details."""
        return int(self.report.details[name])

    def total(self, metric: str) -> int:
        rows = self.profile.metrics.get(metric)
        return int(rows.total.sum()) if rows else 0

    def count(self, metric: str) -> int:
        rows = self.profile.metrics.get(metric)
        return int(rows.count.sum()) if rows else 0

    def path(self, node: int) -> tuple[str, ...]:
        """Names below the recorded function's own frame."""
        frames = [self.profile.frame(at) for at in self.profile.tree.path(node)]
        names = [frame.name.rpartition("<locals>.")[2] for frame in frames]
        start = next((i + 1 for i, name in enumerate(names) if name == "_call"), 2)
        return tuple(names[start:])

    def by_path(self, metric: str, *, count: bool = False) -> dict[tuple[str, ...], int]:
        """Sum of a metric, or number of its events, by path of names; lines are not told apart."""
        rows = self.profile.metrics.get(metric)
        found: dict[tuple[str, ...], int] = {}
        if rows is None:
            return found
        values = rows.count if count else rows.total
        for node, value in zip(rows.node.tolist(), values.tolist(), strict=True):
            path = self.path(node)
            found[path] = found.get(path, 0) + value
        return found

    def kernels(self) -> dict[tuple[str, ...], int]:
        """Launches of kernels by path of names."""
        return {
            path: count
            for path, count in self.by_path("launch_count").items()
            if FrameKind.KERNEL in {self.profile.frame(n).kind for n in self._nodes(path)}
        }

    def _nodes(self, path: tuple[str, ...]) -> list[int]:
        return [n for n in range(len(self.profile.tree)) if self.path(n) == path]


def _call(work: Callable[[], None]) -> None:
    work()


def recorded(
    vendor: str,
    work: Callable[[], None],
    collectors: Sequence[Callable[[], Collector]] = (),
    **options: object,
) -> Recording:
    """Record what a function makes a vendor's device do."""
    manager = SessionManager()
    manager.start(
        None,
        SessionOptions(**options),  # type: ignore[arg-type]
        collectors or (PythonFrames, COLLECTORS[vendor]),  # type: ignore[arg-type]
    )
    try:
        _call(work)
    finally:
        capture = manager.stop()
    return Recording(deepcontext.Profile.from_bytes(capture.encode()), vendor)


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[..., Recording]:
    """Record what a function makes the device do."""
    (device,) = (name for name in _DEVICES if name in request.fixturenames)
    vendor = request.getfixturevalue(device).vendor
    return functools.partial(recorded, vendor.name)
