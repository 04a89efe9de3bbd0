"""Compilations: counted, timed, with the reason for each one after the first."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext.analyzers import run_analyzers
from deepcontext.collectors.jax import compilation as jax_compile
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.jax.conftest import Record, RunScript


def test_a_changed_shape_is_named_with_its_argument(record: Record) -> None:
    @jax.jit
    def scaled(batch: dict[str, jax.Array], factor: jax.Array) -> jax.Array:
        return batch["x"] * factor

    def work() -> None:
        for size in (4, 8, 8, 16):
            scaled({"x": jnp.ones((size, 2))}, jnp.ones(()))

    recording = record(work)
    first, second, third = recording.compilations("scaled")
    assert first["reason"] == "first"
    assert second["changes"] == ["argument 'batch['x']' changed from f32[4,2] to f32[8,2]"]
    assert third["reason"] == "arguments"
    assert third["path"][-1][0].endswith("work")
    assert min(first["trace_ns"], first["lower_ns"], first["compile_ns"]) > 0
    rows = [r for r in jax_programs.recompilations(recording.profile) if r.function == "scaled"]
    assert sum(row.count for row in rows) == 2


def test_a_changed_type_is_named(record: Record) -> None:
    @jax.jit
    def doubled(x: jax.Array) -> jax.Array:
        return x * 2

    def work() -> None:
        doubled(jnp.ones(3, jnp.float32))
        doubled(jnp.ones(3, jnp.int32))

    _, second = record(work).compilations("doubled")
    assert second["changes"] == ["argument 'x' changed from f32[3] to s32[3]"]


def test_a_changed_static_value_is_named(record: Record) -> None:
    @functools.partial(jax.jit, static_argnames="times")
    def repeated(x: jax.Array, *, times: int) -> jax.Array:
        for _ in range(times):
            x = jnp.sin(x)
        return x

    def work() -> None:
        repeated(jnp.ones(3), times=2)
        repeated(jnp.ones(3), times=3)

    _, second = record(work).compilations("repeated")
    assert second["changes"] == ["static argument 'times' changed from 2 to 3"]


def test_the_advice_is_about_what_changed(record: Record) -> None:
    @functools.partial(jax.jit, static_argnames="rate")
    def stepped(x: jax.Array, rate: float) -> jax.Array:
        return x - rate * jnp.sin(x)

    def work() -> None:
        for turn in range(3):
            stepped(jnp.ones(3), rate=0.1 * turn)
        for turn in range(9):
            jnp.ones(31 + turn) * jnp.ones((1, 1))

    profile = record(work).profile
    profile = dataclasses.replace(profile, run=dataclasses.replace(profile.run, wall_ns=1))
    advice = {
        f.title.split("'")[1]: f.advice for f in run_analyzers(profile, only=["recompilation"])
    }
    assert "not in static_argnames" in advice["stepped"]
    assert "under one jax.jit" in advice["multiply"]


def test_a_jit_in_a_loop_is_told_apart_from_changed_arguments(record: Record) -> None:
    def step(x: jax.Array) -> jax.Array:
        return jnp.cos(x) + 1

    def work() -> None:
        for _ in range(3):
            jax.jit(lambda x: step(x))(jnp.ones(3))

    recording = record(work)
    reasons = [c["reason"] for c in recording.compilations("<lambda>")]
    assert reasons == ["first", "new object", "new object"]


def test_functions_of_one_definition_made_with_other_values_are_others(record: Record) -> None:
    def work() -> None:
        x = jnp.ones((1, 4))
        mapped = [jax.pmap(lambda v, k=k: v * k) for k in range(3)]
        jitted = [jax.jit(lambda v, k=k: v + k) for k in range(3)]
        for function in [*mapped, *jitted] * 2:
            function(x)
        for rate in range(3):
            jax.jit(lambda v: jnp.sin(v) * rate)(x)  # noqa: B023  it is called before rate changes

    recording = record(work)
    reasons = [c["reason"] for c in recording.compilations("<lambda>")]
    assert reasons == ["first"] * 7 + ["new object"] * 2
    assert recording.compilations("_fun") == []


def test_a_mapped_function_has_its_own_name(record: Record) -> None:
    def alpha(x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    def beta(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.cos(x) + y

    def work() -> None:
        x = jnp.ones((1, 4))
        first, second = jax.pmap(alpha), jax.pmap(beta)
        for _ in range(3):
            first(x)
            second(x, x).block_until_ready()

    recording = record(work)
    assert (recording.launches("alpha"), recording.launches("beta")) == (3, 3)
    assert recording.device_ns("alpha") > 0
    for function in ("alpha", "beta"):
        assert [c["reason"] for c in recording.compilations(function)] == ["first"]
    assert recording.launches("_fun") == 0


def test_a_size_that_an_operation_outside_jit_is_asked_for_is_named(record: Record) -> None:
    def work() -> None:
        for size in (70001, 70002):
            jnp.zeros(size)

    changes = [c["changes"] for c in record(work).compilations("broadcast_in_dim")]
    assert changes[-1] == ["static argument 'shape' changed from (70001,) to (70002,)"]


def test_the_call_that_is_told_as_before_is_the_most_similar(record: Record) -> None:
    @jax.jit
    def doubled(x: Any) -> Any:
        return x * 2

    def work() -> None:
        for x in (1, 1.0, jnp.ones(()), jnp.ones(1), jnp.ones(2), jnp.ones(2, jnp.int32)):
            doubled(x)

    assert [c["changes"] for c in record(work).compilations("doubled")] == [
        [],
        ["argument 'x' changed from int to float"],
        ["argument 'x' changed from float to f32[]"],
        ["argument 'x' changed from f32[] to f32[1]"],
        ["argument 'x' changed from f32[1] to f32[2]"],
        ["argument 'x' changed from f32[2] to s32[2]"],
    ]


def test_cleared_caches_are_told_apart(record: Record) -> None:
    @jax.jit
    def once(x: jax.Array) -> jax.Array:
        return jnp.tan(x)

    def work() -> None:
        once(jnp.ones(3))
        jax.clear_caches()
        once(jnp.ones(3))

    reasons = [c["reason"] for c in record(work).compilations("once")]
    assert reasons == ["first", "cache"]


def test_programs_compiled_before_the_session_are_known(record: Record) -> None:
    @jax.jit
    def early(x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ x)

    x = jnp.ones((64, 64))
    early(x)

    def work() -> None:
        for _ in range(20):
            early(x).block_until_ready()

    recording = record(work)
    assert recording.launches("early") == 20
    assert recording.device_ns("early") > 0
    assert any(name.endswith("early") for name in recording.lines("early", __file__))


def test_lines_from_the_persistent_cache_are_flagged_when_the_function_has_moved(
    run_script: RunScript, tmp_path: Path
) -> None:
    source = """
        import jax, jax.numpy as jnp
        jax.config.update("jax_compilation_cache_dir", {cache!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        {padding}
        @jax.jit
        def cached(x):
            return jnp.tanh(x @ x) + 1

        for _ in range(20):
            cached(jnp.ones((64, 64))).block_until_ready()
        """
    cache = str(tmp_path / "cache")
    first = run_script(source.format(cache=cache, padding="pass"), "--jax-exact")
    moved = run_script(
        source.format(cache=cache, padding="\n        ".join(["pass"] * 9)), "--jax-exact"
    )
    (before,), (after,) = first.compilations("cached"), moved.compilations("cached")
    assert (before["cached"], before["is_stale"]) == (False, False)
    assert (after["cached"], after["is_stale"]) == (True, True)
    assert moved.section["persistent_cache"]["hits"] >= 1
    # run-time events carry another number than the program from the cache: joined all the same
    assert moved.launches("cached") == 20
    assert moved.device_ns("cached") > 0
    assert moved.detail("unknown_operations") == 0


def test_a_fusion_lists_every_member_with_its_line(record: Record) -> None:
    @jax.jit
    def fused(x: jax.Array) -> jax.Array:
        y = jnp.exp(x)
        z = y * 3.0
        return jnp.sqrt(z) - x

    def work() -> None:
        for _ in range(4):
            fused(jnp.ones((256, 256))).block_until_ready()

    recording = record(work)
    (fusion,) = [
        f
        for f in jax_operations.fusions(recording.profile, several_lines=True)
        if f.program == "jit_fused"
    ]
    assert {"exp", "mul", "sqrt", "sub"} <= {m.primitive for m in fusion.members}
    first = fused.__wrapped__.__code__.co_firstlineno
    lines = {m.source.line for m in fusion.members if m.source.file == __file__}
    assert lines == {first + 2, first + 3, first + 4}
    assert fusion.source_lines == 3
    assert fusion.executions == 4
    assert fusion.bytes == 2 * 256 * 256 * 4
    assert fusion.flops == 4 * 256 * 256


def test_a_program_that_compiles_for_ever_does_not_fill_memory(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax_compile, "_MOST_PROGRAMS", 3)

    def work() -> None:
        for size in range(8):
            jax.jit(lambda x: jnp.sin(x) + 1)(jnp.ones(100 + size)).block_until_ready()

    recording = record(work)
    assert recording.launches("<lambda>") == 8
    assert len(recording.section["programs"]) < 8 + 3
    assert recording.collector.status == "degraded"
    assert "operations of programs after the first 3 are not known" in recording.collector.reason


def test_programs_past_the_ceiling_are_counted_without_operations(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax_compile, "_MOST_PROGRAM_BYTES", 1)

    @jax.jit
    def first(x: jax.Array) -> jax.Array:
        return jnp.sin(x) @ x

    @jax.jit
    def second(x: jax.Array) -> jax.Array:
        return jnp.cos(x) @ x

    x = jnp.ones((32, 32))
    jax.clear_caches()

    def work() -> None:
        for function in (first, second):
            for _ in range(20):
                function(x).block_until_ready()

    recording = record(work)
    kept = [p["module"] for p in recording.section["programs"] if p["has_operations"]]
    assert len(kept) == 1
    hollow = recording.program("jit_second" if kept != ["jit_second"] else "jit_first")
    assert hollow["operations"] == []
    assert hollow["argument_bytes"] == 32 * 32 * 4
    assert hollow["memory"]["argument_bytes"] == 32 * 32 * 4
    assert recording.launches("first") == recording.launches("second") == 20
    count = recording.detail("programs_without_operations")
    assert count == recording.detail("programs") - 1
    assert f"{count} of {count + 1} compiled programs have no operations" in (
        recording.collector.reason
    )


def test_a_snapshot_converts_only_the_programs_that_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[int] = []
    compact = jax_compile._compact

    def counting(program: dict[str, Any]) -> dict[str, Any]:
        converted.append(program["uid"])
        return compact(program)

    monkeypatch.setattr(jax_compile, "_compact", counting)
    output = tmp_path / "out.dcprof"
    session = deepcontext.start(output, snapshot_interval=0, cpu_rate=0)
    try:
        jax.jit(lambda x: x + 1)(jnp.ones(3))
        session.snapshot()
        before = len(converted)
        session.snapshot()
        assert len(converted) == before > 0
        jax.jit(lambda x: x + 2)(jnp.ones(3))
        session.snapshot()
    finally:
        profile = deepcontext.stop()
    assert sorted(set(converted)) == converted
    programs = json.loads(profile.sections["jax"])["programs"]
    assert [program["uid"] for program in programs] == converted
