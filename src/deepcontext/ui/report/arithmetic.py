"""The parts of a report about what operators compute and move, of profiles recorded with ``--shapes``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import arithmetic as arithmetic_summary
from deepcontext.profiler.summaries import efficiency as efficiency_summary
from deepcontext.ui.arithmetic_texts import arithmetic_text, efficiency_text
from deepcontext.ui.format import (
    Elide,
    format_bandwidth,
    format_flops,
    format_ns,
    format_share,
)
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.summaries.arithmetic import Arithmetic
    from deepcontext.profiler.summaries.efficiency import Efficiency
    from deepcontext.profiler.summaries.operator_work import Work
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

    Cells = dict[Column, Callable[[Work, Work], str]]


def print_arithmetic(layout: TextLayout, view: View) -> None:
    """Print how much the lines compute, and how fast, if operators have shapes."""
    found = arithmetic_summary.arithmetic(view.profile, view.limit)
    if found is None:
        return
    layout.title(
        f"Floating-point operations{part_of(len(found.lines), found.line_count)}",
        "products, convolutions, attention; with their backward",
    )
    layout.prose(arithmetic_text(found), indent="  ")
    columns = _columns(_ARITHMETIC, found)
    layout.table(
        (*columns, *source_columns()),
        [
            (*(cell(row.work, found.total) for cell in columns.values()), *view.source_cells(row))
            for row in found.lines
        ],
    )


def print_arithmetic_by_shapes(layout: TextLayout, view: View) -> None:
    """Print how much the operators compute by their shapes, and how fast."""
    found = arithmetic_summary.arithmetic(view.profile, view.limit)
    if found is None or not found.operators:
        return
    count = part_of(len(found.operators), found.operator_count)
    layout.title(f"Floating-point operations by shapes{count}", "of the operators' inputs")
    _print_shapes(layout, view, _columns(_ARITHMETIC, found), found)


def print_efficiency(layout: TextLayout, view: View) -> None:
    """Print how far lines and operators are from the machine's peaks, most time first."""
    found = efficiency_summary.efficiency(view.profile, view.limit)
    if found is None:
        return
    layout.title(
        f"Efficiency{part_of(len(found.lines), found.line_count)}",
        "operators that compute or move data; with their backward",
    )
    layout.prose(efficiency_text(found), indent="  ")
    columns = _columns(_EFFICIENCY, found)
    layout.table(
        (*columns, *source_columns()),
        [
            (*(cell(row.work, found.total) for cell in columns.values()), *view.source_cells(row))
            for row in found.lines
        ],
    )
    count = part_of(len(found.operators), found.operator_count)
    layout.title(f"Efficiency by shapes{count}", "of the operators' inputs")
    _print_shapes(layout, view, columns, found)


def _print_shapes(
    layout: TextLayout, view: View, columns: Cells, found: Arithmetic | Efficiency
) -> None:
    layout.table(
        (*columns, Column("calls", rank=1), Column("operator", Elide.END)),
        [
            (
                *(cell(row.work, found.total) for cell in columns.values()),
                view.count(row.work.calls),
                row.name,
            )
            for row in found.operators
        ],
    )


def _columns(columns: Cells, found: Arithmetic | Efficiency) -> Cells:
    """Leave out columns of which nothing is known: without peaks, or without element types."""
    unknown = {_OF_PEAK} if found.roof is None else set()
    if not found.total.bytes:
        unknown |= {_INTENSITY, _BANDWIDTH}
    return {column: cell for column, cell in columns.items() if column not in unknown}


def _share_of_operations(work: Work, total: Work) -> str:
    return format_share(work.flops / total.flops if total.flops else 0.0)


def _share_of_time(work: Work, total: Work) -> str:
    return format_share(work.time_ns / total.time_ns if total.time_ns else 0.0)


def _rate(work: Work, _: Work) -> str:
    return f"{format_flops(work.flops_per_second)}/s" if work.time_ns and work.flops else "-"


def _bandwidth(work: Work, _: Work) -> str:
    return format_bandwidth(work.bytes_per_second) if work.time_ns and work.bytes else "-"


def _intensity(work: Work, _: Work) -> str:
    return f"{work.intensity:.3g}" if work.bytes and work.flops else "-"


_OF_PEAK: Final = Column("of peak")
_INTENSITY: Final = Column("flop/byte", rank=4)
_BANDWIDTH: Final = Column("bytes/s", rank=3)
_ARITHMETIC: Final[Cells] = {
    Column("operations"): lambda work, _: format_flops(work.flops),
    Column("share", rank=2): _share_of_operations,
    Column("time"): lambda work, _: format_ns(work.time_ns),
    Column("a second"): _rate,
    _OF_PEAK: lambda work, _: format_share(work.of_peak),
    _INTENSITY: _intensity,
    _BANDWIDTH: _bandwidth,
}
_EFFICIENCY: Final[Cells] = {
    Column("time"): lambda work, _: format_ns(work.time_ns),
    Column("share"): _share_of_time,
    _OF_PEAK: lambda work, _: format_share(work.of_peak),
    Column("FLOP/s"): _rate,
    _BANDWIDTH: _bandwidth,
    _INTENSITY: _intensity,
}
