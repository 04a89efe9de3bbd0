"""Times inside programs: against jax's own reading of the trace, and beside the user's traces."""

from __future__ import annotations

import ctypes
import itertools
import queue
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext import _native
from deepcontext.collectors.jax import sampling as jax_sampling
from deepcontext.collectors.jax import window_policy
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries.jax import operations as jax_operations

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.jax.conftest import Record


@jax.jit
def step(w: Any, x: Any) -> Any:
    def loss(weights: Any) -> Any:
        hidden = jnp.tanh(x @ weights)
        return jnp.sum(jax.nn.softmax(hidden @ weights.T) ** 2)

    return w - 1e-3 * jax.grad(loss)(w)


def _train(steps: int = 60) -> None:
    w, x = jnp.ones((128, 128)) * 1e-2, jnp.ones((128, 128))
    for _ in range(steps):
        w = step(w, x).block_until_ready()


def _spans(xspace: bytes) -> dict[str, list[float]]:
    """ns from issue to completion by operation of jit_step, read by jax's own reader."""
    profile = jax.profiler.ProfileData.from_serialized_xspace(xspace)
    events = [
        event
        for plane in profile.planes
        if plane.name == "/host:CPU"
        for line in plane.lines
        for event in line.events
    ]
    ends: dict[int, float] = {}
    operations = []
    for event in events:
        stats = dict(event.stats)
        if event.name.startswith("end: "):
            ends[stats["_c"]] = max(ends.get(stats["_c"], 0), event.start_ns + event.duration_ns)
        elif stats.get("hlo_module") == "jit_step":
            operations.append((stats["hlo_op"], stats["_p"], event))
    spans = defaultdict(list)
    for name, producer, event in operations:
        end = max(event.start_ns + event.duration_ns, ends.get(producer, 0))
        spans[name].append(end - event.start_ns)
    return spans


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What XLA's tracer gave; one trace, however slow the machine: no run is cut by its edge."""
    kept: list[bytes] = []
    read = jax_sampling.Sampler._read

    def keep(sampler: Any, notes: Any, xspace: bytes, open_s: float) -> None:
        kept.append(xspace)
        read(sampler, notes, xspace, open_s)

    monkeypatch.setattr(jax_sampling.Sampler, "_read", keep)
    monkeypatch.setattr(window_policy, "_EXACT_S", 3600.0)
    return kept


# From CPython 3.12 on; as an error it would end the process, because jaxlib does not expect one.
@pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning")
def test_operation_times_agree_with_jax_profile_data_of_the_same_run(
    record: Record, traces: list[bytes]
) -> None:
    recording = record(_train)
    (trace,) = traces
    reference = _spans(trace)
    profile = recording.profile
    rows = profile.metrics["device_time_ns"]
    found = dict(zip(rows.node.tolist(), zip(rows.count, rows.total, strict=True), strict=True))
    (jit,) = recording.nodes(FrameKind.OPERATOR, "jit(step)")
    checked = 0
    for name, spans in reference.items():
        nodes = [n for n in recording.nodes(FrameKind.HLO, name) if n in found and n > jit]
        count, total = (sum(int(found[n][i]) for n in nodes) for i in (0, 1))
        assert count == 60
        if sum(spans) > 60 * 2000:  # shorter ones are within the clock's steps
            assert total / count == pytest.approx(sum(spans) / len(spans), rel=0.05)
            checked += 1
    assert checked >= 3


@jax.jit
def repeated(x: Any) -> Any:
    def body(carry: Any, _: None) -> tuple[Any, Any]:
        return jnp.tanh(carry @ carry * 1e-3), carry.sum()

    return jax.lax.scan(body, x, None, length=20)[0]


def test_the_time_of_a_loop_is_what_the_operations_of_its_body_leave(
    record: Record, traces: list[bytes]
) -> None:
    def work() -> None:
        x = jnp.ones((128, 128))
        for _ in range(4):
            repeated(x).block_until_ready()

    recording = record(work)
    operations = recording.program("jit_repeated")["operations"]
    (loop,) = [o for o in operations if o["opcode"] == "while"]
    inside = [operations[i]["name"] for i in loop["nested"]]
    (trace,) = traces
    runs = [r for r in _native.jax_read_runs(trace) if r["module"] == "jit_repeated"]
    spans = [{name: times[1] for name, times in run["operations"].items()} for run in runs]
    left = [run[loop["name"]] - sum(run.get(name, 0) for name in inside) for run in spans]
    own = recording.profile.exclusive("device_time_ns")
    loop_ns = sum(int(own[n]) for n in recording.nodes(FrameKind.HLO, loop["name"]))
    assert len(runs) == 4
    assert loop_ns == pytest.approx(sum(max(0, ps) for ps in left) / 1000, rel=0.01)
    counts = recording.profile.counts("device_time_ns")
    executed = [int(counts[n]) for name in inside for n in recording.nodes(FrameKind.HLO, name)]
    assert max(executed) == 4 * 20


def test_the_programs_own_trace_is_untouched_and_windows_pause(
    record: Record, tmp_path: Path
) -> None:
    def work() -> None:
        _train(5)
        with jax.profiler.trace(str(tmp_path)):
            _train(5)
        _train(5)

    recording = record(work)
    assert list(tmp_path.rglob("*.xplane.pb"))
    assert recording.launches("step") == 15
    assert "sampling paused while the program used jax.profiler" in recording.collector.reason
    assert "paused still" not in recording.collector.reason


def test_a_session_object_of_the_program_works(record: Record) -> None:
    from jax._src.lib import _profiler

    def work() -> None:
        _train(3)
        session = _profiler.ProfilerSession()
        _train(3)
        assert len(session.stop()) > 100
        assert isinstance(session, _profiler.ProfilerSession)

    assert record(work).launches("step") == 6


@pytest.mark.parametrize(
    ("part", "reason"),
    [("_read", "a window was not read"), ("_turn", "the thread that samples ended")],
)
def test_an_error_in_sampling_leaves_no_window_open(
    record: Record, monkeypatch: pytest.MonkeyPatch, part: str, reason: str
) -> None:
    failed: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def fail(sampler: Any, *_: Any) -> None:
        failed.put(sampler)
        raise MemoryError("planted")

    def work() -> None:
        monkeypatch.setattr(jax_sampling.Sampler, part, fail)
        _train()
        sampler = failed.get(timeout=60)
        while not sampler.state.refusals:
            time.sleep(0.01)
        with sampler._lock:
            assert sampler._session is None

    recording = record(work)
    assert f"{reason}: MemoryError: planted" in recording.collector.reason
    assert recording.launches("step") == 60


def test_sampled_times_are_scaled_to_the_exact_number_of_launches(record: Record) -> None:
    recording = record(lambda: _train(400), exact=False)
    assert recording.launches("step") == 400
    counts = recording.profile.counts("device_time_ns")
    operations = recording.program("jit_step")["operations"]
    executed = {
        sum(int(counts[n]) for n in recording.nodes(FrameKind.HLO, operation["name"]))
        for operation in operations
    }
    assert 400 in executed


def _buffer_slot(array_type: type) -> int | None:
    """The function behind the buffer protocol of a type: `tp_as_buffer->bf_getbuffer`."""
    tp_as_buffer = 20 * ctypes.sizeof(ctypes.c_void_p)  # Include/cpython/object.h
    procs = ctypes.c_void_p.from_address(id(array_type) + tp_as_buffer).value
    assert procs is not None
    return ctypes.c_void_p.from_address(procs).value


def test_nothing_is_left_behind(record: Record) -> None:
    from jax._src import array, compiler, pjit
    from jax._src.lib import _jax, _profiler

    def state() -> list[object]:
        return [
            _jax.pjit,
            pjit._infer_params,
            compiler.compile_or_get_cached,
            array.ArrayImpl._value,
            _profiler.ProfilerSession,
            _profiler.start_server,
            _buffer_slot(array.ArrayImpl),
        ]

    before = state()
    during: list[list[object]] = []

    def work() -> None:
        _train(2)
        during.append(state())

    recording = record(work)
    assert all(now != then for now, then in zip(during[0], before, strict=True))
    assert state() == before
    assert not _native.jax_is_hooked(step)
    assert recording.collector.details["dispatch"] == "vectorcall"
    record(lambda: _train(2))  # and it starts again
    assert state() == before


def test_waits_and_copies_are_shown_by_line(record: Record) -> None:
    from deepcontext.profiler.summaries.jax import programs as jax_programs

    def work() -> None:
        x = jnp.ones((64, 64))
        for _ in range(3):
            y = step(x, x)
            y.block_until_ready()
            float(y[0, 0])

    rows = jax_programs.transfers(record(work).profile)
    waits = [r for r in rows if r.what == "wait for the device" and "work" in r.source.function]
    copies = [r for r in rows if r.what == "copy to host" and "work" in r.source.function]
    assert [row.count for row in waits] == [3]
    assert [(row.count, row.bytes) for row in copies] == [(3, 12)]


def test_numpy_arguments_are_shown_at_the_line_that_gives_them(record: Record) -> None:
    from deepcontext.profiler.summaries.jax import programs as jax_programs

    @jax.jit
    def summed(x: Any, batch: dict[str, Any], pair: tuple[Any, Any]) -> Any:
        return x.sum() + batch["b"].sum() + pair[0].sum()

    def work() -> None:
        device, host = jnp.ones((64, 64)), np.ones((32, 32), np.float32)
        for _ in range(5):
            summed(host, {"b": host}, (host, device))
        summed(device, {"b": device}, (device, device))

    def make() -> None:
        jnp.asarray(np.ones((16, 16), np.float32))

    rows = jax_programs.transfers(record(work).profile)
    given = [row for row in rows if row.what == "NumPy arguments" and "work" in row.source.function]
    assert [(row.count, row.bytes) for row in given] == [(5, 5 * 3 * 4096)]
    (made,) = jax_programs.transfers(record(make).profile)
    assert (made.bytes, made.source.function.rpartition(".")[2]) == (1024, "make")


@pytest.mark.long
def test_internal_threads_are_not_in_the_profile_and_take_no_signals(run_script: Any) -> None:
    recording = run_script("""
        import pathlib, time
        def internal_threads():
            return [
                int(line.split()[1], 16)
                for task in pathlib.Path("/proc/self/task").iterdir()
                if (task / "comm").read_text() == "deepcontext\\n"
                for line in (task / "status").read_text().splitlines()
                if line.startswith("SigBlk")
            ]
        before = internal_threads()
        import jax, jax.numpy as jnp
        step = jax.jit(lambda x: jnp.sin(x @ x).sum())
        x = jnp.ones((64, 64))
        until = time.monotonic() + 1
        while time.monotonic() < until:
            step(x).block_until_ready()
        after = internal_threads()
        assert len(after) == len(before) + 2, (before, after)  # windows, memory
        assert all(mask >> 14 & 1 for mask in after)  # SIGTERM
    """)
    profile = recording.profile
    assert "Event.wait" not in {profile.frame(node).name for node in range(len(profile.tree))}


@jax.jit
def long_program(x: Any) -> Any:
    return jax.lax.fori_loop(0, 20, lambda _, y: jnp.tanh(y @ y), x)


def test_a_window_is_as_long_as_runs_of_its_main_program_need(
    record: Record, traces: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as those of many small programs beside it need."""
    seen: list[int] = []
    add = _native.jax_add_window

    def noted(notes: Any, xspace: bytes) -> tuple[bool, int, int, int, int, int]:
        answer = add(notes, xspace)
        seen.append(answer[1])
        return answer

    monkeypatch.setattr(_native, "jax_add_window", noted)

    def work() -> None:
        x = jnp.ones((256, 256))
        for _ in range(6):
            y = long_program(x).block_until_ready()
            for _ in range(20):
                y = y[:1, :1] + 1

    recording = record(work)
    assert len(traces) == 1
    assert recording.launches("long_program") == 6
    assert seen == [6]


@jax.jit
def few_events(x: Any) -> Any:
    return jnp.tanh(x @ x @ x)


@jax.jit
def late(x: Any) -> Any:
    return jnp.exp(x @ x)


def test_a_program_that_comes_after_measured_ones_gets_a_window(record: Record) -> None:
    def work() -> None:
        x = jnp.ones((512, 512)) * 1e-3
        for _ in range(300):
            few_events(x).block_until_ready()
        for _ in range(60):
            late(x).block_until_ready()

    recording = record(work, exact=False)
    assert recording.launches("few_events") == 300
    assert recording.device_ns("few_events") > 0
    assert recording.device_ns("late") > 0


@jax.jit
def turning(x: Any, turns: Any) -> Any:
    return jax.lax.fori_loop(0, turns, lambda _, y: jnp.tanh(y @ y), x)


def _turns() -> Iterator[int]:
    """Long runs while all are sampled; then ten times as many short ones, until some were, too."""
    end = time.monotonic() + 0.8
    long_runs = 0
    while time.monotonic() < end:
        long_runs += 1
        yield 20
    first = _native.jax_window_counts()["windows"]
    for calls in itertools.count():
        if calls > 10 * long_runs and _native.jax_window_counts()["windows"] >= first + 6:
            return
        yield 0


@pytest.mark.long
def test_what_is_sampled_whole_at_first_counts_for_no_more_than_the_rest(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half a second instead of one, and the windows after it twice as often.
    monkeypatch.setattr(window_policy, "_GRANT_S", 0.5)
    monkeypatch.setattr(window_policy, "DUTY", 2 * window_policy.DUTY)
    turned = 0

    def work() -> None:
        nonlocal turned
        x = jnp.ones((64, 64))
        for turns in _turns():
            turning(x, turns).block_until_ready()
            turned += turns + 1  # times that the condition is asked

    profile = record(work, exact=False).profile
    asked = max(o.executions for o in jax_operations.operations(profile) if "turning" in o.program)
    assert asked < 2 * turned


@jax.jit
def endless(x: Any, turns: Any) -> Any:
    """A loop of which no window can see a whole run: a million events a second."""
    return jax.lax.while_loop(
        lambda state: state[0] < turns,
        lambda state: (state[0] + 1, jnp.sort(jnp.linalg.qr(state[1] + 1)[0] @ state[1], axis=0)),
        (0, x),
    )[1]


@pytest.mark.long
def test_a_long_loop_of_tiny_operations_is_seen_in_short_parts(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To trace it whole would double the program's processor time."""
    lengths: list[float] = []
    read = jax_sampling.Sampler._read

    def noted(sampler: Any, notes: Any, xspace: bytes, open_s: float) -> None:
        read(sampler, notes, xspace, open_s)
        if sampler._policy.look_s:
            lengths.append(open_s)

    monkeypatch.setattr(jax_sampling.Sampler, "_read", noted)
    waited = 0.0

    def work() -> None:
        nonlocal waited
        x = jnp.ones((16, 16))
        endless(x, 10).block_until_ready()
        start = time.monotonic()
        for _ in range(2):
            endless(x, 100_000).block_until_ready()
        waited = time.monotonic() - start

    monkeypatch.setattr(window_policy, "_MOST_EVENTS", 5_000)
    recording = record(work, exact=False)
    assert sum(lengths) < waited / 2
    assert recording.launches("endless") == 3
    profile = recording.profile
    turns = max(o.executions for o in jax_operations.operations(profile) if "endless" in o.program)
    assert turns > 20_000  # of 200,010; the one run that was seen whole had 10
    assert 0.1 * waited < recording.device_ns("endless") / 1e9 < 2 * waited
    assert recording.detail("launches_by_parts") == 3
