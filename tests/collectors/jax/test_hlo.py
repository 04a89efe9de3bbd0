"""The readers of HLO modules and traces: against what XLA itself says, and with damaged input."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from deepcontext import _native

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
import hlo as fake_hlo  # found through the line above


def block(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    with jax.named_scope("mlp"):
        hidden = jnp.tanh(x @ params["up"])
    return jnp.sum((x + hidden @ params["down"]) ** 2)


def _compiled(function: Any, *arguments: Any) -> tuple[Any, bytes]:
    compiled = jax.jit(function).lower(*arguments).compile()
    (module,) = compiled.runtime_executable().hlo_modules()
    return compiled, module.as_serialized_hlo_module_proto()


@pytest.fixture(scope="module")
def gradient() -> tuple[Any, bytes]:
    params = {"up": jnp.ones((64, 256)), "down": jnp.ones((256, 64))}
    return _compiled(jax.grad(block), params, jnp.ones((32, 64)))


def _program(hlo: bytes) -> dict[str, Any]:
    program = _native.jax_read_program(hlo, "", "", [])
    assert program is not None
    return program


def test_flops_of_the_operations_add_up_to_the_compilers_own_count(
    gradient: tuple[Any, bytes],
) -> None:
    compiled, hlo = gradient
    analysis = compiled.cost_analysis()
    analysis = analysis[0] if isinstance(analysis, list) else analysis
    flops = sum(operation["flops"] for operation in _program(hlo)["operations"])
    # tanh counts as one operation an element here, and not at all there
    assert flops == pytest.approx(analysis["flops"] + analysis.get("transcendentals", 0), rel=0.02)


def test_bytes_of_arguments_and_results(gradient: tuple[Any, bytes]) -> None:
    program = _program(gradient[1])
    params_bytes = 2 * 64 * 256 * 4
    assert program["argument_bytes"] == params_bytes + 32 * 64 * 4
    assert program["output_bytes"] == params_bytes
    assert program["arguments"] == 3


def test_every_traced_operation_has_a_phase_and_the_line_it_was_written_on(
    gradient: tuple[Any, bytes],
) -> None:
    operations = _program(gradient[1])["operations"]
    dots = [o for o in operations if o["primitive"] == "dot_general"]
    assert {"forward", "backward"} == {o["phase"] for o in dots}
    functions = {line[0] for o in dots for line in o["lines"] if line[1] == __file__}
    assert "block" in functions


def test_the_path_to_the_tracing_caller_is_cut_off() -> None:
    def inner(x: jax.Array) -> jax.Array:
        return jnp.sin(x @ x)

    _, hlo = _compiled(inner, jnp.ones((8, 8)))
    whole = _program(hlo)
    name = inner.__qualname__
    cut = _native.jax_read_program(hlo, name, __file__, [])
    assert cut is not None
    first = {o["lines"][0][0] for o in whole["operations"] if o["lines"]}
    assert first != {name}
    assert {o["lines"][0][0] for o in cut["operations"] if o["lines"]} == {name}


def test_an_operation_without_metadata_is_shown_with_the_one_it_serves() -> None:
    def transposed(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x.T @ x, x.T

    _, hlo = _compiled(transposed, jnp.ones((64, 32)))
    operations = _program(hlo)["operations"]
    inserted = [o for o in operations if o["origin"] in {"producer", "consumer"}]
    for operation in inserted:
        assert operation["lines"], operation
    assert all(o["origin"] != "none" for o in operations if o["opcode"] != "copy")


def test_an_operation_in_loops_runs_as_often_as_xla_says() -> None:
    def nested(x: jax.Array, times: jax.Array) -> jax.Array:
        def inner(y: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            return jnp.tanh(y @ y), y.sum()

        def body(y: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            return jax.lax.scan(inner, jnp.sin(y), None, length=5)

        y = jax.lax.scan(body, x, None, length=7)[0]
        y = jax.lax.fori_loop(0, times, lambda _, z: jnp.cos(z), y)
        return jax.lax.cond(times > 1, jnp.exp, jnp.sqrt, y)

    operations = _program(_compiled(nested, jnp.ones((8, 8)), jnp.asarray(3))[1])["operations"]
    runs = {each["primitive"]: each["runs"] for each in operations}
    assert (runs["sin"], runs["tanh"]) == (7, 35)
    assert (runs["cos"], runs["exp"]) == (0, 0)  # not known
    loops = [each["runs"] for each in operations if each["opcode"] == "while"]
    assert sorted(loops) == [1, 1, 7]


def test_a_product_in_a_fusion_is_on_its_own_line() -> None:
    def summed(x: jax.Array, w: jax.Array) -> jax.Array:
        h = x @ w
        return h.sum()

    operations = _program(_compiled(summed, jnp.ones((64, 32)), jnp.ones((32, 16)))[1])[
        "operations"
    ]
    first = summed.__code__.co_firstlineno
    (dense,) = [
        each
        for each in operations
        if "dot_general" in {each["primitive"], *(one["primitive"] for one in each["members"])}
    ]
    assert (dense["primitive"], dense["lines"][-1][2]) == ("dot_general", first + 1)


def test_damaged_bytes_are_refused_or_read_without_harm(gradient: tuple[Any, bytes]) -> None:
    hlo = gradient[1]
    assert _native.jax_read_program(b"", "", "", []) is None
    assert _native.jax_read_program(b"\xff" * 64, "", "", []) is None
    assert _native.jax_read_program(hlo[: len(hlo) // 2], "", "", []) is None
    chance = random.Random(7)
    for _ in range(300):
        damaged = bytearray(hlo)
        for _ in range(chance.randint(1, 8)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        _native.jax_read_program(bytes(damaged), "", "", [])


def _trace() -> bytes:
    from jax._src.lib import _profiler

    @jax.jit
    def traced(x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ x)

    x = jnp.ones((128, 128))
    traced(x).block_until_ready()
    options = _profiler.ProfileOptions()
    options.host_tracer_level = 1
    options.python_tracer_level = 0
    session = _profiler.ProfilerSession(options)
    for _ in range(3):
        traced(x).block_until_ready()
    content: bytes = session.stop()
    return content


def test_a_trace_gives_its_runs_and_survives_damage() -> None:
    trace = _trace()
    runs = [run for run in _native.jax_read_runs(trace) if run["module"] == "jit_traced"]
    assert len(runs) == 3
    assert all(run["is_complete"] and run["operations"] for run in runs)
    assert len({run["run_id"] for run in runs}) == 3
    chance = random.Random(11)
    for _ in range(200):
        damaged = bytearray(trace)
        for _ in range(chance.randint(1, 8)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        _native.jax_read_runs(bytes(damaged[: chance.randrange(len(damaged))]))


@pytest.mark.parametrize(
    ("dtype", "text", "bits"),
    [
        ("int2", "s2", 2),
        ("uint2", "u2", 2),
        ("int4", "s4", 4),
        ("uint4", "u4", 4),
        ("float4_e2m1fn", "f4e2m1fn", 4),
        ("float8_e3m4", "f8e3m4", 8),
        ("float8_e4m3", "f8e4m3", 8),
        ("float8_e4m3b11fnuz", "f8e4m3b11fnuz", 8),
        ("float8_e4m3fn", "f8e4m3fn", 8),
        ("float8_e4m3fnuz", "f8e4m3fnuz", 8),
        ("float8_e5m2", "f8e5m2", 8),
        ("float8_e5m2fnuz", "f8e5m2fnuz", 8),
        ("float8_e8m0fnu", "f8e8m0fnu", 8),
        ("bool", "pred", 8),
        ("bfloat16", "bf16", 16),
        ("complex64", "c64", 64),
    ],
)
def test_types_have_the_compilers_names_and_sizes(dtype: str, text: str, bits: int) -> None:
    try:
        x = jnp.ones((5, 3)).astype(dtype)
        compiled, hlo = _compiled(lambda x: x[::-1], x)
    except (TypeError, ValueError) as error:  # this jax does not know the type
        pytest.skip(str(error))
    program = _program(hlo)
    (module,) = compiled.runtime_executable().hlo_modules()
    assert f"{text}[5,3]" in module.to_string()
    assert f"{text}[5,3]" in {operation["shape"] for operation in program["operations"]}
    assert program["output_bytes"] == -(-15 * bits // 8)
    assert program["argument_bytes"] == compiled.memory_analysis().argument_size_in_bytes


def test_a_type_newer_than_this_build_has_a_number_and_no_size() -> None:
    hlo = fake_hlo.module("new", [fake_hlo.Instruction("x", "add", element_type=250)])
    (operation,) = _program(hlo)["operations"]
    assert operation["shape"] == "type250[8]"
    assert operation["bytes"] == 0
