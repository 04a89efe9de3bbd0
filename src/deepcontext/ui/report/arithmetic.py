"""The part of a report about floating-point operations, for profiles recorded with ``--shapes``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import arithmetic as arithmetic_summary
from deepcontext.ui.format import Elide, format_count, format_flops, format_ns, format_share
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.arithmetic import Arithmetic, Work
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


def print_arithmetic(layout: TextLayout, view: View) -> None:
    """Print how much the lines compute, and how fast, if operators have shapes."""
    found = arithmetic_summary.arithmetic(view.profile, view.limit)
    if found is None:
        return
    layout.title(
        f"Floating-point operations{part_of(len(found.lines), found.line_count)}",
        "products, convolutions, attention; with their backward",
    )
    layout.prose(_sentence(found), indent="  ")
    layout.table(
        (*_COLUMNS, *source_columns()),
        [(*_cells(row.work, found.total), *view.source_cells(row)) for row in found.lines],
    )


def print_arithmetic_by_shapes(layout: TextLayout, view: View) -> None:
    """Print how much the operators compute by their shapes, and how fast."""
    found = arithmetic_summary.arithmetic(view.profile, view.limit)
    if found is None or not found.operators:
        return
    count = part_of(len(found.operators), found.operator_count)
    layout.title(f"Floating-point operations by shapes{count}", "of the operators' inputs")
    layout.table(
        (*_COLUMNS, Column("calls", rank=1), Column("operator", Elide.END)),
        [
            (*_cells(row.work, found.total), format_count(row.work.calls), row.name)
            for row in found.operators
        ],
    )


_COLUMNS: Final = (Column("operations"), Column("share"), Column("time"), Column("a second"))


def _cells(work: Work, total: Work) -> tuple[str, str, str, str]:
    return (
        format_flops(work.flops),
        format_share(work.flops / total.flops if total.flops else 0.0),
        format_ns(work.time_ns),
        _rate(work),
    )


def _rate(work: Work) -> str:
    return f"{format_flops(work.flops_per_second)}/s" if work.time_ns else "-"


def _sentence(found: Arithmetic) -> str:
    where = "kernels" if found.is_on_gpu else "operators"
    parts = [f"{format_flops(found.total.flops)} in {format_ns(found.total.time_ns)} of {where}"]
    if found.steps:
        parts.append(f"{format_flops(found.total.flops / found.steps)} a step")
    if found.fastest_flops_per_second:
        parts.append(f"the fastest shapes attain {format_flops(found.fastest_flops_per_second)}/s")
    if found.unknown:
        calls = sum(found.unknown.values())
        names = ", ".join(sorted(found.unknown))
        parts.append(f"without {format_count(calls)} calls whose sizes are not known ({names})")
    return "; ".join(parts)
