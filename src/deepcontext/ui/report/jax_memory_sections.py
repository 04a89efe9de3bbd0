"""The tables of a report about memory that JAX uses: arrays by line, and needs of programs.

`deepcontext.profiler.summaries.jax.memory` computes the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries.jax import memory as jax_memory
from deepcontext.ui.format import Elide, format_bytes, format_count, format_share
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.jax.memory import ArrayMemory
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


def print_jax_memory(layout: TextLayout, view: View) -> None:
    """Print the memory of arrays at the peak by line, and the memory that programs need."""
    view = view.run
    arrays = jax_memory.array_memory(view.profile)
    if arrays is not None and arrays.peak_bytes:
        _print_arrays(layout, view, arrays)
    _print_programs(layout, view)


def _print_arrays(layout: TextLayout, view: View, arrays: ArrayMemory) -> None:
    layout.title("Memory of JAX arrays", "held at their peak, by the line that created them")
    layout.prose(_arrays_text(arrays))
    table = jax_memory.held_at_peak(view.profile, view.limit)
    rows = [row for row in table.rows if row.exclusive] if table else []
    cells = [
        (
            format_bytes(row.exclusive),
            format_share(row.exclusive / arrays.peak_bytes),
            *view.source_cells(row),
        )
        for row in rows
    ]
    if arrays.unknown_peak_bytes:
        share = format_share(arrays.unknown_peak_bytes / arrays.peak_bytes)
        cells.append((format_bytes(arrays.unknown_peak_bytes), share, "not observed", ""))
    if cells:
        layout.table((Column("at peak"), Column("share"), *source_columns(rank=1)), cells)


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


def _print_programs(layout: TextLayout, view: View) -> None:
    programs = jax_memory.program_memory(view.profile)
    if not programs:
        return
    shown = programs[: view.limit]
    layout.title(
        f"Memory of compiled programs{part_of(len(shown), len(programs))}",
        "while it runs = arguments + results - donated + temporary; from the compiler",
    )
    has_code = any(program.generated_code_bytes for program in shown)
    columns = [
        Column("while it runs"),
        Column("temporary"),
        Column("arguments", rank=3),
        Column("results", rank=2),
        Column("donated", rank=1),
        *([Column("code", rank=4)] if has_code else []),
        Column("program", Elide.MIDDLE),
    ]
    cells = [
        (
            format_bytes(row.run_bytes),
            *(
                format_bytes(size or None)
                for size in (
                    row.temp_bytes,
                    row.argument_bytes,
                    row.output_bytes,
                    row.alias_bytes,
                    *([row.generated_code_bytes] if has_code else []),
                )
            ),
            row.program,
        )
        for row in shown
    ]
    layout.table(tuple(columns), cells)
