"""What is known of JAX: jitted functions, operations of compiled programs, waits and copies, memory."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.collectives import is_collective
from deepcontext.profiler.summaries.jax import memory as jax_memory
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.ui.format import format_bytes, format_count, format_ns, format_share
from deepcontext.ui.sections.table import Column, Table, Unit, picked, share
from deepcontext.ui.sections.view import line_of

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.jax.memory import ArrayMemory
    from deepcontext.profiler.summaries.jax.operations import Operation
    from deepcontext.ui.sections.table import Row
    from deepcontext.ui.sections.view import View

_GIGA: Final = 1e9
_FUNCTION: Final = (
    Column("launches", "launches", Unit.COUNT),
    Column("dispatch_ns", "host", Unit.NS, rank=2),
    Column(
        lambda row: (
            f"{row['compilations']}x {format_ns(row['compile_ns'])}" if row["compilations"] else "-"
        ),
        "compiled",
        Unit.NUMBER,
        rank=1,
    ),
    Column("device_time_by_phase_ns", "phases", Unit.PHASES, rank=3),
    Column("name", "function", Unit.NAME),
)
_PROGRAM: Final = (
    Column("run_bytes", "while it runs", Unit.ONE_BYTES),
    Column("temp_bytes", "temporary", Unit.ONE_BYTES),
    Column("argument_bytes", "arguments", Unit.ONE_BYTES, rank=3),
    Column("output_bytes", "results", Unit.ONE_BYTES, rank=2),
    Column("alias_bytes", "donated", Unit.ONE_BYTES, rank=1),
    Column("generated_code_bytes", "code", Unit.ONE_BYTES, rank=4),
    Column("program", "program", Unit.NAME),
)


def has_device_time(view: View) -> bool:
    """Return whether any time inside compiled programs was measured."""
    return jax_programs.device_accounting(view.profile).total > 0


def accounting_text(view: View) -> str:
    """Return how much of the device time is on lines of the user's code."""
    accounting = jax_programs.device_accounting(view.profile)
    text = f"{format_share(accounting.on_user_line / accounting.total)} of it is on your lines"
    parts = {
        "by the call alone": accounting.at_call,
        "inserted by the compiler, shown with the operation they serve": accounting.inserted,
    }
    shares = [f"{format_share(ns / accounting.total)} {what}" for what, ns in parts.items() if ns]
    return f"{text} ({', '.join(shares)})" if shares else text


def functions(view: View) -> Table:
    """Return the jitted functions. One that never ran completely while sampled is counted, not timed."""
    found = jax_programs.jitted_functions(view.profile)
    total = jax_programs.device_accounting(view.profile).total
    rows = [
        picked(
            row,
            *("name", "launches", "dispatch_ns", "compilations", "compile_ns"),
            device_time_ns="device_ns",
            device_time_by_phase_ns="phases",
        )
        for row in found[: view.limit]
    ]
    return view.table(
        "Jitted functions",
        "device: inside the compiled program, summed over threads; host: in the call itself, "
        "without compilation",
        (Column("device_time_ns", "device", Unit.NS), share("device_time_ns", total), *_FUNCTION),
        rows,
        row_count=len(found),
        below=f"device time: {accounting_text(view)}" if total else "",
    )


def operations(view: View) -> Table:
    """Return the costliest operations of compiled programs."""
    found = jax_operations.operations(view.profile) if has_device_time(view) else ()
    shown = found[: view.limit]
    note = "flop/byte: arithmetic intensity, from the shapes; GFLOP/s and GB/s: attained"
    if any(is_collective(each.opcode, each.name) for each in shown):
        note += "; the time of collectives contains waiting for slower processes"
    if any(each.is_estimated for each in shown):
        note += "; ~: estimated, because a loop or branch was seen in some launches only"
    columns = (
        Column("device_time_ns", "device", Unit.NS),
        Column(
            lambda row: (
                "~" * row["executions_are_estimated"] + view.text_of(row["executions"], Unit.COUNT)
            ),
            "runs",
            Unit.NUMBER,
        ),
        Column("flops", "flop", Unit.ONE_COUNT, rank=5),
        Column("bytes_moved", "bytes", Unit.ONE_BYTES, rank=4),
        Column("flops_per_byte", "flop/byte", Unit.ONE_COUNT, rank=1),
        Column(lambda row: row["flops_per_second"] / _GIGA, "GFLOP/s", Unit.ONE_COUNT, rank=2),
        Column(lambda row: row["bytes_per_second"] / _GIGA, "GB/s", Unit.ONE_COUNT, rank=3),
        Column(lambda row: f"{row['name']} in {row['program']}", "operation", Unit.TEXT),
        Column(
            lambda row: (
                place_text(view, row["source"])
                + (f" +{row['source_lines'] - 1}" if row["source_lines"] > 1 else "")
            ),
            "line",
            Unit.PATH,
        ),
    )
    return view.table(
        "Operations of compiled programs",
        note,
        columns,
        list(map(_operation, shown)),
        row_count=len(found),
    )


def transfers(view: View) -> Table:
    """Return waits for the device, and copies between device and host."""
    found = jax_programs.transfers(view.profile)
    rows = [
        picked(row, "what", "source", "count", "host_ns", size_bytes="bytes")
        for row in found[: view.limit]
    ]
    columns = (
        Column(
            lambda row: (
                view.time(row["host_ns"])
                if row["what"] != jax_programs.HOST_ARGUMENTS
                else "in the call"
            ),
            "host",
            Unit.NUMBER,
        ),
        Column("count", "times", Unit.COUNT),
        Column("size_bytes", "bytes", Unit.BYTES, rank=1),
        Column("what", "what", Unit.TEXT),
        Column(lambda row: place_text(view, row["source"]), "line", Unit.PATH),
    )
    note = "host: how long the line blocked the program"
    return view.table("Waits and copies", note, columns, rows, row_count=len(found))


def arrays(view: View) -> Table | None:
    """Return the memory of arrays at their peak by line, None where arrays were not inspected."""
    found = jax_memory.array_memory(view.profile)
    if found is None or not found.peak_bytes:
        return None
    rows = _held(view)
    if found.unknown_peak_bytes:
        rows.append({"file": "not observed", "line": 0, "peak_bytes": found.unknown_peak_bytes})
    return Table(
        "Memory of JAX arrays",
        "held at their peak, by the line that created them",
        (
            Column("peak_bytes", "at peak", Unit.BYTES),
            share("peak_bytes", found.peak_bytes),
            *view.line_columns(rank=1),
        ),
        rows,
        above=_arrays_text(found),
    )


def programs(view: View) -> Table:
    """Return what one run of each compiled program needs."""
    found = jax_memory.program_memory(view.profile)
    return Table(
        "Memory of compiled programs",
        "while it runs = arguments + results - donated + temporary; from the compiler",
        _PROGRAM,
        [{**asdict(row), "run_bytes": row.run_bytes} for row in found[: view.limit]],
        len(found),
    )


def place_text(view: View, source: Row | None) -> str:
    """Return ``"train.py:12"`` for the value of "source"."""
    return view.place(source) if source else "no line of your code"


def jax_to_dict(view: View) -> dict[str, object] | None:
    """Return the facts about JAX, with the members of every fusion; None for a profile without JAX."""
    profile, limit = view.profile, view.limit
    if jax_programs.section(profile) is None:
        return None
    found, fusions = (
        jax_operations.operations(profile),
        jax_operations.fusions(profile, several_lines=True),
    )
    return {
        **picked(
            jax_programs.device_accounting(profile),
            device_time_ns="total",
            device_time_on_user_line_ns="on_user_line",
            device_time_inserted_ns="inserted",
            device_time_by_phase_ns="phases",
        ),
        "functions": functions(view).rows,
        "operation_count": len(found),
        "operations": [_operation(row) for row in found[:limit]],
        "fusions_of_several_lines": [_operation(row) for row in fusions[:limit]],
        "recompilations": [
            picked(row, "function", "reason", "changes", "path", "count", "spent_ns")
            for row in jax_programs.recompilations(profile)[:limit]
        ],
        "transfers": transfers(view).rows,
        "arrays": _arrays(view),
        "programs": programs(view).rows,
    }


def _arrays(view: View) -> dict[str, object] | None:
    found = jax_memory.array_memory(view.profile)
    return None if found is None else {**asdict(found), "held_at_peak": _held(view)}


def _held(view: View) -> list[Row]:
    table = jax_memory.held_at_peak(view.profile, view.limit)
    rows = table.rows if table else ()
    return [{**line_of(row), "peak_bytes": row.exclusive} for row in rows if row.exclusive]


def _arrays_text(arrays: ArrayMemory) -> str:
    facts = [
        f"{format_bytes(arrays.peak_bytes)} at most in {format_count(arrays.looks)} checks",
        f"{format_bytes(arrays.live_bytes)} in {format_count(arrays.live_arrays)} arrays at the last check",
    ]
    facts += [
        f"{device}: {format_bytes(size)} at most by its allocator, running programs included"
        for device, size in arrays.device_peak_bytes.items()
    ]
    return "; ".join(facts)


def _operation(row: Operation) -> Row:
    return picked(
        row,
        *("program", "name", "opcode", "phase", "source", "source_lines", "executions", "flops"),
        *("flops_per_second", "bytes_per_second", "members"),
        device_time_ns="device_ns",
        executions_are_estimated="is_estimated",
        bytes_moved="bytes",
        flops_per_byte="intensity",
    )
