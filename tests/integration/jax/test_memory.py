"""Memory of JAX: arrays by the line that made them, and what compiled programs need."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import io
import json
import linecache
import random
import re
import runpy
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

import deepcontext
from deepcontext import _native
from deepcontext.analyzers import run_analyzers
from deepcontext.collectors.jax import buffers as jax_buffers
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.profiler.summaries.jax import memory as jax_memory
from deepcontext.profiler.summaries.jax.programs import plain_name
from deepcontext.ui.report import render_report, report_to_dict

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.jax.conftest import RunScript

HERE = Path(__file__).name
KIB = 1024


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    weights: dict[str, Any]
    count: Any


def updated(state: State, x: Any) -> State:
    weights = {name: w + jnp.tanh(x @ w) for name, w in state.weights.items()}
    return State(weights, state.count + 1)


step = jax.jit(updated)


@functools.partial(jax.jit, donate_argnums=0)
def donating(state: State, x: Any) -> State:
    return updated(state, x)


@jax.jit
def doubled(x: Any) -> Any:
    return x * 2


def _state(width: int) -> State:
    weights = {name: jnp.ones((width, width)) for name in "ab"}
    return State(weights, jnp.zeros((), jnp.int32))


def _session(work: Callable[[Callable[[], None]], object], path: Path) -> deepcontext.Profile:
    """Record `work`, which is given a function that looks at what is alive."""
    jax.clear_caches()
    session = deepcontext.start(path, snapshot_interval=0, cpu_rate=0)
    try:
        kept = work(session.snapshot)
    finally:
        profile = deepcontext.stop()
    del kept  # alive until here
    return profile


def _bytes_of(profile: deepcontext.Profile, metric: str, name: str) -> list[int]:
    """Sizes at nodes of that name, those without left out."""
    rows = profile.metrics[metric]
    return [
        int(total)
        for node, total in zip(rows.node.tolist(), rows.total.tolist(), strict=True)
        if profile.frame(node).name == name
    ]


def test_arrays_stand_at_the_call_that_made_them_and_leave_when_they_die(tmp_path: Path) -> None:
    source = np.ones((32, 32), np.float32)

    def work(look: Callable[[], None]) -> object:
        x = jax.device_put(source)
        kept = [doubled(x) for _ in range(10)]
        look()
        del kept[3:]
        return x, kept

    profile = _session(work, tmp_path / "out.dcprof")
    assert _bytes_of(profile, "jax_peak_bytes", "jit(doubled)") == [10 * 4 * KIB]
    assert _bytes_of(profile, "jax_live_bytes", "jit(doubled)") == [3 * 4 * KIB]
    assert _bytes_of(profile, "jax_live_bytes", "jax: copy to device") == [4 * KIB]
    table = jax_memory.held_at_peak(profile)
    assert table is not None
    assert [Path(row.file).name for row in table.rows if row.exclusive] == [HERE, HERE]


def test_an_address_that_is_used_again_does_not_keep_its_maker(tmp_path: Path) -> None:
    def work(look: Callable[[], None]) -> object:
        for _ in range(50):
            doubled(jnp.ones((16, 16)))
        # Made from existing buffers, outside of any call that is seen.
        part = jnp.ones((16, 16))
        whole = [
            jax.make_array_from_single_device_arrays((16, 16), part.sharding, [part])
            for _ in range(50)
        ]
        look()
        return part, whole

    profile = _session(work, tmp_path / "out.dcprof")
    assert _bytes_of(profile, "jax_live_bytes", "jit(doubled)") == []
    arrays = jax_memory.array_memory(profile)
    assert arrays is not None
    assert arrays.unknown_peak_bytes >= 50 * KIB


def test_every_living_array_has_its_maker_after_many_came_and_went(tmp_path: Path) -> None:
    halved = jax.jit(lambda x: x / 2)
    makers = {"jit(doubled)": doubled, "jit(<lambda>)": halved}
    drawn = random.Random(7)
    kept: dict[str, list[Any]] = {name: [] for name in makers}

    def work(_look: Callable[[], None]) -> object:
        x = jnp.ones((4, 4))
        for _ in range(6000):  # enough for the table to grow twice
            name = drawn.choice(list(makers))
            if kept[name] and drawn.random() < 0.3:
                kept[name].pop(drawn.randrange(len(kept[name])))
            else:
                kept[name].append(makers[name](x))
        return x

    profile = _session(work, tmp_path / "out.dcprof")
    assert min(len(arrays) for arrays in kept.values()) > 800
    for name, arrays in kept.items():
        assert sum(_bytes_of(profile, "jax_live_bytes", name)) == 64 * len(arrays)


@pytest.mark.parametrize("function", [step, donating], ids=["kept", "donated"])
def test_results_in_containers_are_found_and_donated_arrays_are_no_more(
    tmp_path: Path, function: Any
) -> None:
    is_donating = function is donating

    def work(look: Callable[[], None]) -> object:
        state, x = _state(64), jnp.ones((64, 64))
        old = [state]
        for _ in range(3):
            state = function(state, x)
            old.append(state)
        look()
        return old, x

    profile = _session(work, tmp_path / "out.dcprof")
    name, module = (
        ("jit(donating)", "jit_donating") if is_donating else ("jit(updated)", "jit_updated")
    )
    steps = 1 if is_donating else 3
    assert _bytes_of(profile, "jax_live_bytes", name) == [steps * (2 * 16 * KIB + 4)]
    (program,) = [p for p in jax_memory.program_memory(profile) if p.program == module]
    assert program.argument_bytes == 3 * 16 * KIB + 4
    # 32 KiB of arrays and a number; the compiler may add a table of pointers to results
    assert 0 <= program.output_bytes - (2 * 16 * KIB + 4) < 100
    assert program.alias_bytes == (2 * 16 * KIB + 4 if is_donating else 0)
    assert program.run_bytes == (
        program.argument_bytes + program.output_bytes + program.temp_bytes - program.alias_bytes
    )


class Model:
    """A tree of modules that know their parents."""

    def __init__(self, depth: int, parent: Model | None = None) -> None:
        self.parent = parent
        self.config = {f"key{i}": [i] for i in range(10)}
        self.children = [Model(depth - 1, self) for _ in range(3)] if depth else []

    def apply(self, x: Any) -> Any:
        return x


@jax.tree_util.register_pytree_node_class
class TrainState:
    """As flax's: parameters, and a function that is no part of them."""

    def __init__(self, params: Any, apply_fn: Any) -> None:
        self.params = params
        self.apply_fn = apply_fn

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.params,), self.apply_fn

    @classmethod
    def tree_unflatten(cls, auxiliary: Any, children: Any) -> TrainState:
        return cls(children[0], auxiliary)


def test_what_a_result_keeps_besides_its_arrays_is_not_searched(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def work(look: Callable[[], None]) -> object:
        params = {name: jnp.ones(4) for name in "abc"}
        state = TrainState(params, Model(5).apply)
        partial = jax.tree_util.Partial(Model(5).apply, jnp.ones(4))
        seen.append(_native.jax_search_arrays([state, (partial, None)]))
        seen.append(_native.jax_search_arrays(_state(4)))
        look()
        return state

    _session(work, tmp_path / "out.dcprof")
    (arrays, visits), (registered, _) = seen
    assert arrays == 4
    assert visits < 40
    assert registered == 3


def _nested(depth: int) -> Any:
    result: Any = jnp.ones(4)
    for _ in range(depth):
        result = [result]
    return result


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (lambda: _nested(15), 1),
        (lambda: _nested(17), 0),
        (lambda: [[jnp.ones(4)] for _ in range(2100)], 1999),  # the outer list is one of 2000
        (lambda: [[jnp.ones(4)], *range(20_100), [jnp.ones(4)]], 1),  # from one end
    ],
    ids=["deep", "deeper", "containers", "objects"],
)
def test_what_a_result_holds_is_searched_up_to_limits(
    tmp_path: Path, result: Callable[[], Any], found: int
) -> None:
    """An array that is not found is alive without a maker."""
    seen = []

    def work(look: Callable[[], None]) -> object:
        made = result()
        seen.append(_native.jax_search_arrays(made))
        look()
        return made

    _session(work, tmp_path / "out.dcprof")
    assert seen[0][0] == found


def test_report_and_json_say_it(tmp_path: Path) -> None:
    def work(look: Callable[[], None]) -> object:
        kept = [doubled(jnp.ones((64, 64))) for _ in range(10)]
        look()
        return kept

    profile = _session(work, tmp_path / "out.dcprof")
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=160), full=True)
    text = file.getvalue()
    assert "Memory of JAX arrays" in text
    assert f"{HERE}:" in text.partition("Memory of JAX arrays")[2]
    assert "jit_doubled" in text.partition("Memory of compiled programs")[2]
    report: Any = report_to_dict(profile, limit=100, metric="host_time_ns")
    (row,) = [p for p in report["jax"]["programs"] if p["program"] == "jit_doubled"]
    assert (row["argument_bytes"], row["output_bytes"]) == (16 * KIB, 16 * KIB)
    lines = report["jax"]["arrays"]["held_at_peak"]
    assert max(line["peak_bytes"] for line in lines) >= 10 * 16 * KIB


def test_names_of_jitted_functions_meet_those_of_the_compiler() -> None:
    for function in (lambda x: x, doubled):
        module = jax.jit(function).lower(1.0).compile().runtime_executable().hlo_modules()[0].name
        name = f"jit({function.__name__})"
        assert plain_name(name) == plain_name(module)


@pytest.mark.parametrize("function", [step, donating], ids=["kept", "donated"])
def test_state_that_could_be_donated_is_found(tmp_path: Path, function: Any) -> None:
    jax.clear_caches()

    def work() -> None:
        state, x = _state(2048), jnp.ones((1, 2048))
        x = jnp.broadcast_to(x, (2048, 2048)) * 0
        for _ in range(4):
            state = jax.block_until_ready(function(state, x))

    deepcontext.start(jax_exact=True, cpu_rate=0)
    try:
        work()
    finally:
        profile = deepcontext.stop()
    found = [
        f for f in run_analyzers(profile, only=["memory"]) if "keeps old and new values" in f.title
    ]
    if function is donating:
        assert found == []
        return
    (finding,) = found
    assert "jit_updated" in finding.title
    assert finding.gain is not None
    assert finding.gain.upper_bound >= 2 * 2048**2 * 4
    (node,) = finding.nodes
    assert profile.frame(node).kind is FrameKind.OPERATOR


def test_what_is_alive_at_the_end_is_seen_before_jax_takes_its_backends_away(
    run_script: RunScript,
) -> None:
    recording = run_script(
        """
        import jax, jax.numpy as jnp

        @jax.jit
        def kept(x):
            return x + 1

        arrays = [kept(jnp.ones((64, 64))) for _ in range(7)]
        """
    )
    assert _bytes_of(recording.profile, "jax_live_bytes", "jit(kept)") == [7 * 16 * KIB]


def test_without_memory_nothing_is_watched(tmp_path: Path) -> None:
    before = _dealloc_slot()
    deepcontext.start(memory=False, cpu_rate=0)
    try:
        kept = doubled(jnp.ones((16, 16)))
        during = _dealloc_slot()
    finally:
        profile = deepcontext.stop()
    del kept
    assert during == before
    assert "jax_live_bytes" not in profile.metrics
    assert jax_memory.array_memory(profile) is None
    assert jax_memory.program_memory(profile)  # costs nothing
    report: Any = json.loads(json.dumps(report_to_dict(profile, limit=9, metric="host_time_ns")))
    assert report["jax"]["arrays"] is None


def test_the_slot_of_the_dying_array_is_put_back(tmp_path: Path) -> None:
    before = _dealloc_slot()
    during: list[int | None] = []
    _session(lambda _: during.append(_dealloc_slot()), tmp_path / "out.dcprof")
    assert during != [before]
    assert _dealloc_slot() == before


def _dealloc_slot() -> int | None:
    """`tp_dealloc` of the type of arrays (Include/cpython/object.h)."""
    place = 6 * ctypes.sizeof(ctypes.c_void_p)
    return ctypes.c_void_p.from_address(id(type(jnp.ones(1))) + place).value


def leaky_loop(steps: int, kept: list[Any]) -> None:
    x = jnp.ones((64, 64))
    for _ in range(steps):
        kept.append(doubled(x))
        doubled(x).block_until_ready()
        deepcontext.step()


def test_arrays_that_are_kept_grow_at_their_line_step_by_step(tmp_path: Path) -> None:
    profile = _session(lambda _: leaky_loop(24, []), tmp_path / "out.dcprof")
    use = memory_summary.arrays_use(profile)
    assert use is not None
    assert (use.steps, use.growth_since_step, use.growth_steps) == (24, 8, 16)
    (grown,) = memory_summary.growth(profile)
    assert "kept.append(doubled(x))" in linecache.getline(grown.file, grown.line)
    assert (grown.size_bytes, grown.grown_steps, grown.steps) == (16 * 16 * KIB, 16, 16)
    assert grown.is_leak
    assert _bytes_of(profile, "growth_bytes", "jit(doubled)") == [16 * 16 * KIB]
    report: Any = report_to_dict(profile, limit=100, metric="host_time_ns")
    (line,) = report["memory"]["lines"]["growth"]
    assert (line["growth_bytes"], line["is_leak"]) == (16 * 16 * KIB, True)
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=160), full=True)
    assert "leak?" in file.getvalue().partition("Memory that grew")[2]


def test_arrays_that_take_turns_and_a_list_that_is_full_do_not_grow(tmp_path: Path) -> None:
    def work(_look: Callable[[], None]) -> object:
        state, latest = jnp.ones((64, 64)), deque[Any](maxlen=3)
        for _ in range(20):
            state = doubled(state)
            latest.append(doubled(state))
            deepcontext.step()
        return latest

    profile = _session(work, tmp_path / "out.dcprof")
    use = memory_summary.arrays_use(profile)
    assert use is not None
    assert use.steps == 20
    assert memory_summary.growth(profile) == ()
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=160), full=True)
    assert "Memory that grew" not in file.getvalue()


def test_an_array_that_is_made_anew_and_larger_grows(tmp_path: Path) -> None:
    def work(_look: Callable[[], None]) -> object:
        cache = np.zeros((1, 256), np.float32)
        held = jax.device_put(cache)
        for rows in range(2, 18):
            held = jax.device_put(np.zeros((rows, 256), np.float32))
            deepcontext.step()
        return held

    profile = _session(work, tmp_path / "out.dcprof")
    (grown,) = memory_summary.growth(profile)
    # 16 steps: from the end of the 8th, with 9 rows, to that of the last, with 17.
    assert (grown.size_bytes, grown.grown_steps) == (8 * KIB, 8)


def test_ends_of_steps_are_looked_at_within_what_looking_may_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax_buffers, "_FREE_NS", 0)
    monkeypatch.setattr(jax_buffers, "_MOST_COST", 1e-9)
    profile = _session(lambda _: leaky_loop(24, []), tmp_path / "out.dcprof")
    use = memory_summary.arrays_use(profile)
    assert use is None or use.steps <= 1


def test_the_leak_of_the_documentation_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "memory.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (each for each in blocks if "import jax" in each)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "leak.py"
    file.write_text(block, encoding="utf-8")
    runpy.run_path(str(file))
    profile = deepcontext.Profile.load(tmp_path / "jax_leak.dcprof")
    (leak,) = (each for each in memory_summary.growth(profile) if each.is_leak)
    assert "train_step(weight, x)" in linecache.getline(leak.file, leak.line)
    assert (leak.grown_steps, leak.steps) == (16, 16)
