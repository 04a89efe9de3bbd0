"""Sessions and torch: before and after its import, again and again, and when torch is refused."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

import deepcontext
from deepcontext import _native
from deepcontext.collectors.torch import operators as torch_operators

torch = pytest.importorskip("torch")


def work(number: int = 1) -> None:
    torch.neg(torch.full((2,), float(number)))


def collectors(recording: Any, *names: str) -> list[Any]:
    return [c for c in recording.profile.trust.collectors if c.name in names]


@pytest.mark.long
def test_start_before_the_import_of_torch(script: Any) -> None:
    script.run("""
        import deepcontext
        deepcontext.start("out.dcprof")
        def late():
            import torch
            return torch.neg(torch.ones(2))
        late()
        deepcontext.stop()
    """)
    recording = script.recording()
    (path,) = recording.paths("aten::neg")
    assert path[-2:] == ["late: return torch.neg(torch.ones(2))", "aten::neg"]
    (collector,) = (c for c in recording.profile.trust.collectors if c.name == "torch")
    assert collector.status == "ran"
    assert collector.details["torch"] == torch.__version__


@pytest.mark.long
def test_start_before_the_import_and_import_in_a_thread(script: Any) -> None:
    script.run("""
        import deepcontext, threading
        deepcontext.start("out.dcprof")
        def late():
            import torch
            torch.neg(torch.ones(2))
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
        import torch
        torch.sin(torch.ones(2))
        deepcontext.stop()
    """)
    recording = script.recording()
    assert recording.calls("aten::neg") == recording.calls("aten::sin") == 1


@pytest.mark.long
def test_start_while_torch_is_being_imported(script: Any) -> None:
    script.run("""
        import sys, threading, deepcontext
        begun = threading.Event()
        class Tell:
            def find_spec(self, name, path=None, target=None):
                if name == "torch.nn":
                    begun.set()
        sys.meta_path.insert(0, Tell())
        def load():
            import torch
        thread = threading.Thread(target=load)
        thread.start()
        begun.wait()
        deepcontext.start("out.dcprof")
        thread.join()
        import torch
        torch.neg(torch.ones(2))
        deepcontext.stop()
    """)
    assert script.recording().calls("aten::neg") == 1


@pytest.mark.long
def test_a_program_that_asks_for_the_spec_of_torch_before_it_imports_it(script: Any) -> None:
    script.run("""
        import importlib.util, deepcontext
        deepcontext.start("out.dcprof")
        assert importlib.util.find_spec("torch") is not None
        import torch
        torch.neg(torch.ones(2))
        deepcontext.stop()
    """)
    recording = script.recording()
    assert recording.calls("aten::neg") == 1
    assert [c.status for c in collectors(recording, "torch", "memory")] == ["ran", "ran"]


@pytest.mark.long
def test_a_torch_that_was_loaded_unnoticed_is_observed_from_the_next_snapshot(script: Any) -> None:
    script.run("""
        import sys, deepcontext
        finders = list(sys.meta_path)
        session = deepcontext.start("out.dcprof", snapshot_interval=3600)
        sys.meta_path = finders
        import torch
        session.snapshot()
        torch.neg(torch.ones(2))
        deepcontext.stop()
    """)
    recording = script.recording()
    assert recording.calls("aten::neg") == 1
    for collector in collectors(recording, "torch", "memory"):
        assert collector.status == "degraded"
        assert "did not notice until the next snapshot" in collector.reason
    assert any("all operators before" in note for note in recording.profile.trust.notes)


@pytest.mark.long
def test_a_torch_that_was_loaded_unnoticed_to_the_end_is_a_fault_of_the_profiler(
    script: Any,
) -> None:
    script.run("""
        import sys, deepcontext
        finders = list(sys.meta_path)
        deepcontext.start("out.dcprof", snapshot_interval=0)
        sys.meta_path = finders
        import torch
        torch.neg(torch.ones(2))
        deepcontext.stop()
    """)
    recording = script.recording()
    for collector in collectors(recording, "torch", "memory"):
        assert collector.status == "unavailable"
        assert "torch was loaded but the profiler did not notice" in collector.reason
    assert any(note.startswith("error: torch was loaded") for note in recording.profile.trust.notes)


def test_an_import_of_torch_that_fails(script: Any) -> None:
    (script.folder / "torch").mkdir()
    (script.folder / "torch" / "__init__.py").write_text("raise OSError('libtorch is broken')\n")
    printed = script.run("""
        import sys, deepcontext
        before = list(sys.meta_path)
        deepcontext.start("out.dcprof")
        for _ in range(2):
            try:
                import torch
            except OSError as error:
                print(error)
        deepcontext.stop()
        assert sys.meta_path == before and "torch" not in sys.modules
    """)
    assert printed == "libtorch is broken\n" * 2
    outcome = script.recording().profile.trust
    (collector,) = (c for c in outcome.collectors if c.name == "torch")
    assert collector.status == "off"


def test_no_torch_at_all(script: Any) -> None:
    script.run("""
        import sys, deepcontext
        deepcontext.start("out.dcprof")
        deepcontext.stop()
        assert not {"torch", "jax"} & set(sys.modules)
    """)
    (collector,) = (c for c in script.recording().profile.trust.collectors if c.name == "torch")
    assert collector.status == "off"
    assert "did not import torch" in collector.reason


@pytest.mark.long
def test_ten_sessions(record: Any) -> None:
    nodes = set()
    for _ in range(10):
        recording = record(work)
        assert recording.calls("aten::neg") == 1
        nodes.add(recording.counters["nodes"])
    assert len(nodes) == 1
    assert not _native.torch_is_observing()


def first_model() -> None:
    torch.nn.Sequential(torch.nn.Linear(2, 2))(torch.ones(1, 2)).sum().backward()


def second_model() -> None:
    torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU())(torch.ones(1, 2))


def test_a_second_session_knows_nothing_of_the_first(record: Any) -> None:
    first = record(first_model)
    second = record(second_model)
    assert first.paths("Linear '0'")
    assert not second.paths("Linear '0'")
    assert second.calls("aten::addmm") == second.calls("AddmmBackward0") == 0
    assert second.paths("ReLU '1'") == [
        [
            "second_model: torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU())(torch.ones(1, 2))",
            "Sequential",
            "Sequential.forward",
            "ReLU '1'",
        ]
    ]
    assert second.counters["backward_links_missed"] == 0


def test_backward_of_a_forward_before_the_session_is_counted_as_missed(record: Any) -> None:
    loss = torch.ones(2, requires_grad=True).square().sum()
    recording = record(loss.backward)
    assert recording.counters["backward_links_missed"] == 2
    assert any("2 backward operators" in note for note in recording.profile.trust.notes)
    (path,) = recording.paths("PowBackward0")
    assert path[:2] == ["Tensor.backward", "backward"]


def test_backward_of_a_forward_in_the_last_session_is_not_mixed_up(record: Any) -> None:
    kept: list[Any] = []
    record(lambda: kept.append(torch.ones(2, requires_grad=True).square().sum()))
    recording = record(lambda: kept[0].backward())
    assert recording.counters["backward_links_found"] == 0
    assert recording.counters["backward_links_missed"] == 2


@pytest.mark.long
def test_start_and_stop_while_other_threads_work() -> None:
    over = threading.Event()
    made: list[int] = []

    def train() -> None:
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
        while not over.is_set():
            net(torch.ones(2, 4)).sum().backward()
        made.append(1)

    threads = [threading.Thread(target=train) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        deepcontext.start()
        profile = deepcontext.stop()
        assert (profile.tree.parent[1:] >= 0).all()
    over.set()
    for thread in threads:
        thread.join()
    assert made == [1, 1, 1]


def test_stop_inside_an_operator_and_a_module(record: Any) -> None:
    class Stopping(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, value: Any) -> Any:
            profiles.append(deepcontext.stop())
            return torch.neg(value)

    profiles: list[Any] = []
    deepcontext.start()
    Stopping()(torch.ones(1))
    assert not profiles[0].query().kind("operator").name("aten::neg").count()
    assert record(work).calls("aten::neg") == 1


def test_a_calibration_that_saw_too_little_refuses() -> None:
    assert not _native.torch_load()
    assert not _native.torch_begin_calibration()
    torch.ones(2, requires_grad=True).mul(torch.ones(2))
    reason = _native.torch_finish_calibration()
    assert reason == "calibration saw 1 operator calls, expected at least 4"


def test_a_calibration_while_another_runs_refuses() -> None:
    assert not _native.torch_load()
    assert not _native.torch_begin_calibration()
    try:
        assert "already running" in _native.torch_begin_calibration()
    finally:
        _native.torch_finish_calibration()


def test_a_layout_that_fits_no_known_torch_is_refused() -> None:
    """Operators whose numbers cannot be told apart leave more than one candidate for a field."""
    assert not _native.torch_load()
    assert not _native.torch_begin_calibration()
    with torch.no_grad():
        for _ in range(6):
            torch.ones(2).mul(torch.ones(2))
    reason = _native.torch_finish_calibration()
    assert "not one that was verified (found byte offsets: sequence" in reason


def test_a_torch_that_cannot_be_observed_is_said_and_the_program_runs(
    record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No multiplication is run for the calibration to see, so that it must refuse."""
    monkeypatch.setattr(torch_operators, "_CALIBRATION_CALLS", 0)
    recording = record(work)
    assert not recording.operators()
    (collector,) = (c for c in recording.profile.trust.collectors if c.name == "torch")
    assert collector.status == "unavailable"
    assert collector.reason == (
        f"torch {torch.__version__} cannot be observed: "
        "calibration saw 0 operator calls, expected at least 4"
    )


def test_a_fork_in_the_middle_leaves_the_child_alone(record: Any) -> None:
    def fork() -> int:
        work()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            work()
            os.write(write, b"1" if not _native.is_recording() else b"0")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.read(read, 1) == b"1"
        os.close(read)
        os.close(write)
        work()
        return status

    recording = record(fork)
    assert recording.calls("aten::neg") == 2
    assert recording.counters["forked_children"] == 1


@pytest.mark.long
def test_a_session_of_a_forked_child_counts_no_time_twice(script: Any) -> None:
    output = script.run("""
        import os, sys, time, torch, deepcontext
        torch.set_num_threads(1)
        x = torch.randn(400, 400)
        def program():
            for _ in range(60):
                for _ in range(3):
                    torch.mm(x, x)
                end = time.thread_time() + 0.001
                while time.thread_time() < end:
                    sum(range(100))
        deepcontext.start(None)
        torch.mm(x, x)
        deepcontext.stop()
        if os.fork() == 0:
            begun = time.perf_counter_ns()
            deepcontext.start(None)
            program()
            time.sleep(0.05)  # a profile without any wait has no metric for it
            query = deepcontext.stop().query()
            elapsed = time.perf_counter_ns() - begun
            names = ("host_time_ns", "sampled_cpu_time_ns", "sampled_wait_time_ns")
            print(*(query.total(name) / elapsed for name in names))
            sys.stdout.flush()
            os._exit(0)
        os.wait()
    """)
    operators, running, waiting = map(float, output.split())
    assert operators > 0.2
    assert operators + running + waiting < 1.1


@pytest.mark.long
def test_a_fault_of_the_profiler_while_torch_is_imported_does_not_reach_the_program(
    script: Any,
) -> None:
    script.run("""
        import deepcontext
        from deepcontext import _native
        del _native.torch_start
        deepcontext.start("out.dcprof")
        import torch
        torch.neg(torch.ones(2))
        deepcontext.stop()
    """)
    (collector,) = (c for c in script.recording().profile.trust.collectors if c.name == "torch")
    assert collector.status == "unavailable"
    assert "cannot be observed: AttributeError: " in collector.reason


@pytest.mark.long
def test_a_child_with_a_session_of_its_own_does_not_record_its_calibration(script: Any) -> None:
    script.run(
        """
        import os
        import deepcontext
        import torch

        deepcontext.start("parent.dcprof", cpu_rate=0)
        torch.ones(4).exp()
        child = os.fork()
        if child == 0:
            deepcontext.start("out.dcprof", cpu_rate=0)
            torch.ones(4).exp()
            deepcontext.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        deepcontext.stop()
        """
    )
    recording = script.recording()
    assert recording.calls("aten::exp") == 1
    assert not recording.operators("aten::mul"), "an operator of the calibration"
