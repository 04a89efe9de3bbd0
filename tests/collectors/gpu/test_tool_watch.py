"""Proton and PyTorch's CUPTI monitor inside a session: the profiler gives way, and says so.

The fake CUPTI plays the tools' part in CUPTI; the modules that the program imports are stand-ins with the
functions that the tools have, or PyTorch's own with those two functions replaced.
"""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.collectors.gpu import tool_watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kit import FakeGpu

    from tests.collectors.gpu.test_scenarios import Record

MISSING = "GPU work that ran while Proton had CUPTI is missing from this profile"


class Proton:
    """What `triton.profiler` calls: it raises where CUPTI refuses, and ends with the last session."""

    def __init__(self, nvidia: FakeGpu) -> None:
        self._nvidia = nvidia
        self._sessions = 0
        self._running: set[int] = set()

    def start(self, _name: str, _context: str, _data: str, backend: str, _mode: str) -> int:
        if backend == "cupti" and not self._running:
            code = self._nvidia.subscriber_begin()
            if code:
                raise RuntimeError(f"Failed to execute cuptiSubscribe with error {code}")
        self._sessions += 1
        if backend == "cupti":
            self._running.add(self._sessions)
        return self._sessions

    def finalize(self, session: int, _output_format: str) -> None:
        self._running.discard(session)
        if not self._running:
            self._nvidia.subscriber_end()

    def finalize_all(self, _output_format: str) -> None:
        self._running.clear()
        self._nvidia.subscriber_end()


@pytest.fixture
def load_proton(
    nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[], Any]]:
    """Import a `triton.profiler.profile` as a program does; return its `libproton`."""
    folder = tmp_path / "triton" / "profiler"
    folder.mkdir(parents=True)
    for file in (folder.parent / "__init__.py", folder / "__init__.py"):
        file.touch()
    (folder / "profile.py").write_text("import fake_libproton as libproton\n", encoding="utf-8")
    proton = Proton(nvidia)
    functions = {name: getattr(proton, name) for name in ("start", "finalize", "finalize_all")}
    library = SimpleNamespace(**functions)
    monkeypatch.setitem(sys.modules, "fake_libproton", library)  # type: ignore[arg-type]
    monkeypatch.syspath_prepend(tmp_path)

    def forget() -> None:
        for name in [each for each in sys.modules if each.partition(".")[0] == "triton"]:
            del sys.modules[name]

    forget()
    yield lambda: importlib.import_module("triton.profiler.profile").libproton
    forget()
    assert vars(library) == functions


def launch(nvidia: FakeGpu, name: str, count: int) -> None:
    nvidia.launch(name, us=10, count=count)
    nvidia.deliver()


def begin(proton: Any, backend: str = "cupti") -> Any:
    return proton.start("name", "shadow", "tree", backend, "")


def test_proton_has_cupti_while_it_runs(
    record: Record, nvidia: FakeGpu, load_proton: Callable[[], Any]
) -> None:
    def work() -> None:
        launch(nvidia, "before", 10)
        proton = load_proton()
        first, second = begin(proton), begin(proton)
        launch(nvidia, "during", 20)
        proton.finalize(first, "")
        launch(nvidia, "still during", 5)
        proton.finalize(second, "")
        launch(nvidia, "after", 30)

    recording = record(work)
    assert nvidia.count("profiler_records") == 25
    assert nvidia.count("profiler_unknown_buffers") == 0
    assert recording.counters["gpu_records_matched"] == 40
    assert recording.figure("launches") == recording.figure("answered") == 40
    assert recording.total("gpu_time_ns") == 40 * 10_000
    assert recording.report.status == "degraded"
    because = "only one of the two can subscribe to CUPTI, and the profiler gave way"
    assert recording.report.reason == f"{MISSING}: {because}"


def test_a_session_that_ends_while_proton_runs_leaves_it_its_records(
    record: Record, nvidia: FakeGpu, load_proton: Callable[[], Any]
) -> None:
    proton = load_proton()  # before the session

    def work() -> None:
        launch(nvidia, "before", 10)
        begin(proton)
        launch(nvidia, "during", 20)

    recording = record(work)
    proton.finalize_all("")
    assert nvidia.count("profiler_records") == 20
    assert recording.counters["gpu_records_matched"] == 10
    assert MISSING in recording.report.reason


def test_other_back_ends_of_proton_leave_cupti_to_the_session(
    record: Record, nvidia: FakeGpu, load_proton: Callable[[], Any]
) -> None:
    def work() -> None:
        begin(load_proton(), "instrumentation")
        launch(nvidia, "during", 20)

    recording = record(work)
    assert recording.counters["gpu_records_matched"] == 20
    assert recording.report.status == "ran"


def test_cupti_comes_back_where_proton_cannot_begin(
    record: Record, nvidia: FakeGpu, load_proton: Callable[[], Any]
) -> None:
    def work() -> None:
        proton = load_proton()
        with pytest.raises(TypeError):
            proton.start("name", "shadow", "tree", "cupti")
        launch(nvidia, "after", 20)

    assert record(work).counters["gpu_records_matched"] == 20


def test_a_cupti_that_cannot_be_taken_back_is_said(
    record: Record, nvidia: FakeGpu, load_proton: Callable[[], Any]
) -> None:
    def work() -> None:
        proton = load_proton()
        begin(proton)
        nvidia.fail("cuptiSubscribe", 35)
        proton.finalize_all("")
        launch(nvidia, "after", 20)

    recording = record(work)
    assert recording.report.status == "degraded"
    assert "GPU work after another tool had CUPTI is missing: cuptiSubscribe failed with" in (
        recording.report.reason
    )


@pytest.mark.parametrize("version", [130001, 130401])
def test_pytorchs_monitor_has_its_records_and_gives_them_back(
    record: Record, nvidia: FakeGpu, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """It gives no notice, and takes CUPTI's buffers and clock as torch.profiler does."""
    pytest.importorskip("torch")
    module = pytest.importorskip("torch.profiler._cupti_monitor")
    nvidia.version(version)
    monitor = object.__new__(module.CuptiMonitor)

    def start(self: Any) -> None:
        nvidia.profiler_begin()
        self._started = True

    monkeypatch.setattr(module.CuptiMonitor, "start", start)
    monkeypatch.setattr(module.CuptiMonitor, "stop", lambda _self: nvidia.profiler_end())

    def work() -> None:
        launch(nvidia, "before", 10)
        monitor.start()
        launch(nvidia, "during", 20)
        monitor.stop()
        launch(nvidia, "after", 30)

    recording = record(work)
    assert nvidia.count("profiler_records") == 20
    assert recording.counters["gpu_records_matched"] == 40
    assert recording.total("gpu_time_ns") == 40 * 10_000
    assert any("PyTorch's CUPTI monitor had CUPTI" in n for n in recording.profile.trust.notes)
    assert "left no record" not in recording.report.reason
    assert module.CuptiMonitor.start is start


def test_pytorch_has_the_functions_that_are_watched() -> None:
    """A torch with other names would not be noticed."""
    pytest.importorskip("torch")
    found = [
        module
        for tool in tool_watch.TOOLS
        if tool.module.startswith("torch.") and (module := _import(tool.module)) is not None
    ]
    for module in found:
        assert callable(module.CuptiMonitor.start)
        assert callable(module.CuptiMonitor.stop)
    assert found


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
