"""Every way to make and run a compiled program, each with its launches counted by hand."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.frame import FrameKind, Phase

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from tests.integration.jax.conftest import Record, RunScript


def test_jit_counts_every_launch_at_its_line(record: Record) -> None:
    @jax.jit
    def scaled(x: jax.Array) -> jax.Array:
        return x @ x * 2

    def work() -> None:
        x = jnp.ones((64, 64))
        for _ in range(7):
            scaled(x).block_until_ready()

    recording = record(work)
    assert recording.launches("scaled") == 7
    assert recording.launches_by_path("scaled") == {
        ("test_jit_counts_every_launch_at_its_line", "work"): 7
    }
    assert recording.device_ns("scaled") > 0
    assert any("scaled" in name for name in recording.lines("scaled", __file__))


def test_grad_splits_forward_and_backward(record: Record) -> None:
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    @jax.jit
    def train(w: jax.Array, x: jax.Array) -> jax.Array:
        return w - 0.1 * jax.grad(loss)(w, x)

    def work() -> None:
        w, x = jnp.ones((64, 64)), jnp.ones((64, 64))
        for _ in range(5):
            w = train(w, x).block_until_ready()

    recording = record(work)
    assert recording.launches("train") == 5
    assert {Phase.FORWARD, Phase.BACKWARD} <= recording.phases("train")
    assert any("loss" in name for name in recording.lines("train", __file__))


def test_grad_of_a_jitted_function_without_an_outer_jit(record: Record) -> None:
    @jax.jit
    def energy(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(x @ x))

    def work() -> None:
        x = jnp.ones((32, 32))
        for _ in range(4):
            jax.grad(energy)(x).block_until_ready()

    recording = record(work)
    # each turn runs the forward part and the backward part, one program each
    assert recording.launches("energy") == 8
    assert recording.detail("executions_without_launch") == 0


def test_vmap(record: Record) -> None:
    @jax.jit
    @jax.vmap
    def norm(x: jax.Array) -> jax.Array:
        return jnp.sqrt(jnp.sum(x * x))

    def work() -> None:
        for _ in range(3):
            norm(jnp.ones((16, 8))).block_until_ready()

    recording = record(work)
    assert recording.launches("norm") == 3


def test_lines_inside_a_scan_are_not_repeated(record: Record) -> None:
    def cell(h: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(h @ h + x)

    def unrolled(x: jax.Array) -> jax.Array:
        def body(h: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            h = lax.scan(lambda g, _: (cell(g, h), None), h, None, length=3)[0]
            return cell(h, x), h.sum()

        return jnp.sum(lax.scan(body, x, None, length=5)[0])

    @jax.jit
    def train(x: jax.Array) -> jax.Array:
        return x - jax.grad(unrolled)(x)

    recording = record(lambda: train(jnp.ones((32, 32))).block_until_ready())
    program = recording.program("jit_train")
    paths = [
        [program["lines"][index][0].rpartition(".")[2] for index in operation["lines"]]
        for operation in program["operations"]
    ]
    for path in paths:
        assert len(set(path)) == len(path), path
    assert ["train", "unrolled", "body", "<lambda>", "cell"] in paths


def test_while_loop_and_cond(record: Record) -> None:
    @jax.jit
    def collatz(n: jax.Array) -> jax.Array:
        def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            value, count = state
            value = lax.cond(value % 2 == 0, lambda v: v // 2, lambda v: 3 * v + 1, value)
            return value, count + 1

        return lax.while_loop(lambda s: s[0] != 1, step, (n, jnp.zeros((), jnp.int32)))[1]

    def work() -> None:
        assert int(collatz(jnp.asarray(27))) == 111
        assert int(collatz(jnp.asarray(7))) == 16

    recording = record(work)
    assert recording.launches("collatz") == 2
    assert recording.device_ns("collatz") > 0


def test_remat_is_recompute(record: Record) -> None:
    @jax.checkpoint
    def layer(x: jax.Array) -> jax.Array:
        return jnp.sin(jnp.sin(x @ x))

    @jax.jit
    def train(x: jax.Array) -> jax.Array:
        return jax.grad(lambda v: jnp.sum(layer(layer(v))))(x)

    def work() -> None:
        x = jnp.ones((128, 128)) * 1e-2
        for _ in range(3):
            train(x).block_until_ready()

    recording = record(work)
    assert Phase.RECOMPUTE in recording.phases("train")


def test_custom_vjp(record: Record) -> None:
    @jax.custom_vjp
    def clipped(x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (jnp.clip(g * jnp.cos(x), -1, 1),))

    @jax.jit
    def train(x: jax.Array) -> jax.Array:
        return jax.grad(lambda v: jnp.sum(clipped(v @ v)))(x)

    def work() -> None:
        for _ in range(3):
            train(jnp.ones((64, 64))).block_until_ready()

    recording = record(work)
    assert recording.launches("train") == 3
    assert Phase.BACKWARD in recording.phases("train")


def test_a_jitted_function_inside_two_others_keeps_its_call_sites(record: Record) -> None:
    @jax.jit
    def shared(x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ x)

    @jax.jit
    def outer(x: jax.Array) -> jax.Array:
        left = shared(x)
        right = shared(x + 1)
        return left + right

    def work() -> None:
        for _ in range(3):
            outer(jnp.ones((64, 64))).block_until_ready()

    recording = record(work)
    assert recording.launches("outer") == 3
    assert recording.launches("shared") == 0  # it is part of the outer program
    first = outer.__wrapped__.__code__.co_firstlineno
    sites = {
        frame.line
        for node in range(len(recording.profile.tree))
        if (frame := recording.profile.frame(node)).kind == FrameKind.PYTHON
        and frame.file == __file__
        and frame.name.endswith("outer")
    }
    assert {first + 2, first + 3} <= sites


def test_ahead_of_time_compilation(record: Record) -> None:
    def cubed(x: jax.Array) -> jax.Array:
        return x @ x @ x

    def work() -> None:
        x = jnp.ones((64, 64))
        compiled = jax.jit(cubed).lower(x).compile()
        for _ in range(6):
            compiled(x).block_until_ready()

    recording = record(work)
    assert recording.launches("cubed") == 6
    assert recording.device_ns("cubed") > 0


def test_donated_buffers(record: Record) -> None:
    @functools.partial(jax.jit, donate_argnums=0)
    def update(state: jax.Array, change: jax.Array) -> jax.Array:
        return state + change

    def work() -> None:
        state = jnp.zeros((256, 256))
        for _ in range(5):
            state = update(state, jnp.ones((256, 256)))
        state.block_until_ready()

    recording = record(work)
    assert recording.launches("update") == 5
    assert recording.program("jit_update")["aliased_outputs"] == 1


def test_two_threads_and_three_call_paths_lose_no_launch(record: Record) -> None:
    @jax.jit
    def shared(x: jax.Array) -> jax.Array:
        return x @ x * 1e-3

    def left(x: jax.Array) -> None:
        for _ in range(40):
            shared(x).block_until_ready()

    def middle(x: jax.Array) -> None:
        for _ in range(30):
            shared(x)
        shared(x).block_until_ready()

    def right(x: jax.Array) -> None:
        left(x)
        middle(x)

    def work() -> None:
        x = jnp.ones((128, 128))
        shared(x).block_until_ready()
        with ThreadPoolExecutor(max_workers=2) as threads:
            other = [threads.submit(function, x) for function in (right, left)]
            middle(x)
        assert all(future.exception() is None for future in other)

    recording = record(work)
    assert recording.launches("shared") == 1 + 40 + 31 + 40 + 31
    test = "test_two_threads_and_three_call_paths_lose_no_launch"
    assert recording.launches_by_path("shared") == {
        (test, "work"): 1,
        (test, "work", "middle"): 31,
        ("right", "left"): 40,
        ("right", "middle"): 31,
        ("left",): 40,
    }
    assert recording.detail("executions_without_launch") == 0
    assert recording.detail("unmatched") == 0


def test_disable_jit_launches_the_operations_one_by_one(record: Record) -> None:
    @jax.jit
    def unfused(x: jax.Array) -> jax.Array:
        return jnp.sin(x) + 1

    def work() -> None:
        x = jnp.ones(8)
        with jax.disable_jit():
            for _ in range(3):
                unfused(x)

    recording = record(work)
    assert recording.launches("unfused") == 0
    assert recording.launches("sin") == 3


def test_a_failing_call_is_no_launch(record: Record) -> None:
    @jax.jit
    def picky(x: jax.Array) -> jax.Array:
        return x @ jnp.ones((3, 3))

    def work() -> None:
        picky(jnp.ones((3, 3)))
        for _ in range(2):
            with pytest.raises(TypeError):
                picky(jnp.ones((2, 2)))

    recording = record(work)
    assert recording.launches("picky") == 1


def test_tracing_only_is_no_launch(record: Record) -> None:
    @jax.jit
    def traced(x: jax.Array) -> jax.Array:
        return x + 1

    def work() -> None:
        jax.make_jaxpr(traced)(1.0)
        jax.eval_shape(traced, jnp.ones(3))
        traced(jnp.ones(3))

    recording = record(work)
    assert recording.launches("traced") == 1


def test_shard_map_and_pmap_on_four_devices(run_script: RunScript) -> None:
    recording = run_script(
        """
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import Mesh, PartitionSpec as P
        try:
            shard_map = jax.shard_map
        except AttributeError:
            from jax.experimental.shard_map import shard_map
        mesh = Mesh(np.array(jax.devices()), ("d",))

        @jax.jit
        def summed(x):
            body = lambda part: jax.lax.psum(jnp.sum(part @ part.T), "d")
            return shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P())(x)

        x = jnp.ones((64, 32))
        for _ in range(5):
            summed(x).block_until_ready()
        doubled = jax.pmap(lambda v: v * 2)
        for _ in range(4):
            doubled(jnp.ones((4, 8))).block_until_ready()
        """,
        "--jax-exact",
        environment={"XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
    )
    assert recording.launches("summed") == 5
    assert recording.device_ns("summed") > 0
    assert recording.detail("executions_without_launch") == 0


def test_an_operation_that_xla_made_of_two_has_the_name_of_one(run_script: RunScript) -> None:
    """The sums of the forward and of the backward become one, named "(forward:backward)"."""
    recording = run_script(
        """
        import functools, jax, jax.numpy as jnp, numpy as np
        from jax.sharding import Mesh, PartitionSpec as P
        try:
            shard_map = jax.shard_map
        except AttributeError:
            from jax.experimental.shard_map import shard_map
        mesh = Mesh(np.array(jax.devices()), ("d",))

        @functools.partial(shard_map, mesh=mesh, in_specs=(P("d"), P()), out_specs=P())
        def loss(x, w):
            return jax.lax.pmean(jnp.sum(jnp.tanh(x @ w) ** 2), "d")

        step = jax.jit(jax.value_and_grad(lambda w, x: loss(x, w)))
        w, x = jnp.ones((64, 64)), jnp.ones((128, 64))
        for _ in range(3):
            jax.block_until_ready(step(w, x))
        """,
        "--jax-exact",
        environment={"XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
    )
    names = set(recording.profile.frames.strings)
    assert any(name.startswith("psum") for name in names)
    assert [name for name in names if name.count("(") != name.count(")")] == []


def test_callbacks_into_python(record: Record) -> None:
    seen: list[float] = []

    @jax.jit
    def reporting(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda value: seen.append(float(value)), x.sum())
        return x * 2

    def work() -> None:
        for _ in range(3):
            reporting(jnp.ones(4)).block_until_ready()
        jax.effects_barrier()

    recording = record(work)
    assert seen == [4.0, 4.0, 4.0]
    assert recording.launches("reporting") == 3


CALLBACKS = {
    "ordered": "io_callback(called, shape, x, ordered=True)",
    "unordered": "io_callback(called, shape, x)",
    "pure": "jax.pure_callback(called, shape, x)",
    "debug": "(jax.debug.callback(called, x), x.sum())[1]",
}


def test_what_a_callback_does_is_work_of_the_host(run_script: RunScript) -> None:
    """Its lines, samples and jitted calls are below it, and none of its time is the device's."""
    steps = "\n".join(
        f"@jax.jit\ndef {name}(x): return x + {call}" for name, call in CALLBACKS.items()
    )
    recording = run_script(
        """
        import time, jax, jax.numpy as jnp, numpy as np
        from jax.experimental import io_callback

        @jax.jit
        def heavy(x):
            return jnp.tanh(x @ x).sum()

        def busy():
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until:
                pass

        def called(x):
            busy()
            return np.asarray(heavy(np.asarray(x)))

        shape = jax.ShapeDtypeStruct((), np.float32)
        STEPS
        for step in (NAMES):
            x = jnp.ones((64, 64))
            for _ in range(20):
                x = step(x)
            x.block_until_ready()
            jax.effects_barrier()
        """.replace("STEPS", steps.replace("\n", "\n        ")).replace(
            "NAMES", ", ".join(CALLBACKS)
        ),
        "--jax-exact",
        environment={"JAX_CPU_ENABLE_ASYNC_DISPATCH": "false"},
    )
    profile = recording.profile
    launches = {name: recording.launches(name) for name in (*CALLBACKS, "heavy")}
    assert launches == {**dict.fromkeys(CALLBACKS, 20), "heavy": 80}
    nodes = {
        profile.frame(int(profile.tree.parent[node])).name: node
        for node in recording.nodes(FrameKind.SCOPE, "jax: callback")
    }
    assert nodes.keys() == {f"jit({name})" for name in CALLBACKS}
    path = ("<module>", "called")
    assert recording.launches_by_path("heavy") == {path: 80}
    for name, node in nodes.items():
        assert profile.counts("call_duration_ns")[node] == 20, name
        measured = profile.exclusive("call_duration_ns")[node]
        assert measured >= 20 * 20e6, name
        sampled = sum(
            profile.inclusive(metric)[node]
            for metric in ("sampled_cpu_time_ns", "sampled_wait_time_ns")
            if metric in profile.metrics
        )
        assert 0.5 * measured <= sampled <= 1.1 * measured, name
    calls_of_python = recording.section["callbacks"]
    assert [call[2] for call in calls_of_python] == [20] * len(CALLBACKS)
    assert min(call[3] for call in calls_of_python) >= 20 * 20e6
    # the device has only what it ran
    times = recording.section["times"]
    assert sum(device_ns for *_, device_ns in times) == profile.inclusive("device_time_ns")[0]
    ran = {tuple(row[:2]) for row in times}
    assert not ran & {tuple(call[:2]) for call in calls_of_python}


def test_arguments_that_are_taken_away_while_they_are_looked_at(run_script: RunScript) -> None:
    """Looking at arguments runs user code, which here empties the list that they are in."""
    recording = run_script(
        """
        import time
        import jax, jax.numpy as jnp

        class Leaf:
            emptied = None  # the list to empty

            def __init__(self, value):
                self.__dict__["value"] = value

            def __getattr__(self, name):
                if name == "aval" and Leaf.emptied:
                    Leaf.emptied.clear()
                raise AttributeError(name)

        jax.tree_util.register_pytree_node(
            Leaf, lambda leaf: ((leaf.value,), None), lambda _, children: Leaf(children[0])
        )
        step = jax.jit(lambda leaves: sum(leaf.value.sum() for leaf in leaves))
        for size in (3, 4):  # with two programs the arguments tell which one ran
            step([Leaf(jnp.ones(size)), Leaf(jnp.ones(size))])
        time.sleep(0.3)
        for _ in range(50):
            leaves = [Leaf(jnp.ones(3)), Leaf(jnp.ones(3))]
            Leaf.emptied = leaves
            step(leaves)
            Leaf.emptied = None
        """,
        "--jax-exact",
        environment={"PYTHONMALLOC": "debug"},  # what is freed is overwritten
    )
    assert recording.launches("<lambda>") == 52
