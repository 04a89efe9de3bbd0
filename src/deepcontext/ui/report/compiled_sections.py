"""The table of a report about `torch.compile`: its kernels, and the lines fused into each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.summaries.compiled_kernels import compiled_kernels, time_metric
from deepcontext.ui.compiled_kernels import lines_text, operators_text
from deepcontext.ui.format import Elide, format_share
from deepcontext.ui.labels import metric_label
from deepcontext.ui.report.sections import part_of
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.summaries.compiled_kernels import CompiledKernel
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_MOST_ROWS: Final = 5
_HOW: Final = "INDUCTOR_PROVENANCE=1 gives the lines of every kernel; torch then compiles again"


def print_compiled(layout: TextLayout, view: View) -> None:
    """Print the kernels of `torch.compile` and the lines fused into each; nothing without kernels."""
    kernels = compiled_kernels(view.profile)
    if not kernels:
        return
    rows = [each for each in kernels if each.lines or each.time_ns]
    rows = rows[: min(view.limit, _MOST_ROWS)]
    shown = part_of(len(rows), len(kernels)) if rows else ""
    layout.title(f"Kernels of torch.compile{shown}", "and the lines of the program fused into each")
    if rows:
        layout.table(*_table(view, rows))
    else:
        layout.prose(f"{len(kernels)} kernels; their times and lines are unknown")
    if not all(each.is_complete for each in kernels):
        layout.prose(_HOW, "dim")


def _table(
    view: View, rows: Sequence[CompiledKernel]
) -> tuple[Sequence[Column], Sequence[Sequence[str]]]:
    """Return columns and cells, without empty columns."""
    profile, metric = view.profile, time_metric(view.profile)
    whole = total(profile, metric)
    columns: list[tuple[Column, list[str]]] = []
    if any(row.time_ns for row in rows):
        columns += [
            (Column(metric_label(metric)), [view.time(row.time_ns) for row in rows]),
            (
                Column("share"),
                [format_share(row.time_ns / whole if row.time_ns else None) for row in rows],
            ),
            (Column("calls", rank=4), [view.count(row.calls or None) for row in rows]),
        ]
    columns += [
        (Column("lines", Elide.START), [lines_text(row, profile.run.cwd) or "-" for row in rows]),
        (Column("kernel", Elide.END), [row.name for row in rows]),
    ]
    if any(row.operators for row in rows):
        columns.append((Column("operators", Elide.END, rank=5), list(map(operators_text, rows))))
    cells = list(zip(*(texts for _, texts in columns), strict=True))
    return [column for column, _ in columns], cells
