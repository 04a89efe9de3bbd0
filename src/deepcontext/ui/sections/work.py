"""What operators compute and move, of profiles recorded with ``--shapes``: by line, and by shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import arithmetic as arithmetic_summary
from deepcontext.profiler.summaries import efficiency as efficiency_summary
from deepcontext.ui.arithmetic_texts import arithmetic_text, efficiency_text
from deepcontext.ui.sections.table import Column, Unit, picked, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.summaries.arithmetic import Arithmetic
    from deepcontext.profiler.summaries.efficiency import Efficiency
    from deepcontext.profiler.summaries.operator_work import Work
    from deepcontext.ui.sections.table import Table
    from deepcontext.ui.sections.view import View

_TIME: Final = Column("time_ns", "time", Unit.NS)
_OF_PEAK: Final = Column("of_peak", "of peak", Unit.SHARE)
_RATE: Final = Column("flops_per_second", "FLOP/s", Unit.FLOP_RATE)
_INTENSITY: Final = Column("flops_per_byte", "flop/byte", Unit.ONE_COUNT, rank=4)
_BANDWIDTH: Final = Column("bytes_per_second", "bytes/s", Unit.BANDWIDTH, rank=3)
_OF_OPERATOR: Final = (
    Column("calls", "calls", Unit.COUNT, rank=1),
    Column("name", "operator", Unit.TEXT),
)


def arithmetic(view: View) -> tuple[Table, ...]:
    """Return how much lines and operators compute, and how fast, if operators have shapes."""
    found = arithmetic_summary.arithmetic(view.profile, view.limit)
    if found is None:
        return ()
    flops = Column("flops", "operations", Unit.FLOP)
    columns = (flops, share("flops", found.total.flops, 2), _TIME, _RATE)
    return _tables(
        view,
        found,
        "Floating-point operations",
        "products, convolutions, attention; with their backward",
        arithmetic_text(found),
        (*columns, _OF_PEAK, _INTENSITY, _BANDWIDTH),
    )


def efficiency(view: View) -> tuple[Table, ...]:
    """Return how far lines and operators are from the machine's peaks, most time first."""
    found = efficiency_summary.efficiency(view.profile, view.limit)
    if found is None:
        return ()
    columns = (_TIME, share("time_ns", found.total.time_ns), _OF_PEAK, _RATE)
    return _tables(
        view,
        found,
        "Efficiency",
        "operators that compute or move data; with their backward",
        efficiency_text(found),
        (*columns, _BANDWIDTH, _INTENSITY),
    )


def _tables(
    view: View,
    found: Arithmetic | Efficiency,
    title: str,
    note: str,
    above: str,
    columns: Sequence[Column],
) -> tuple[Table, Table]:
    return (
        view.table(
            title,
            note,
            (*columns, *view.line_columns()),
            [{**view.line(row), **_work(row.work)} for row in found.lines],
            row_count=found.line_count,
            above=above,
        ),
        view.table(
            f"{title} by shapes",
            "of the operators' inputs",
            (*columns, *_OF_OPERATOR),
            [{"name": row.name, **_work(row.work)} for row in found.operators],
            row_count=found.operator_count,
        ),
    )


def arithmetic_to_dict(view: View) -> dict[str, object] | None:
    """Return what operators compute, None without shapes."""
    found = arithmetic_summary.arithmetic(view.profile, view.limit)
    if found is None:
        return None
    names = ("steps", "mfu", "is_on_gpu", "fastest_flops_per_second")
    return {
        **picked(found, *names, unknown_calls="unknown"),
        **_to_dict(found, arithmetic(view)),
    }


def efficiency_to_dict(view: View) -> dict[str, object] | None:
    """Return how far operators are from the peaks, None without shapes and types."""
    found = efficiency_summary.efficiency(view.profile, view.limit)
    if found is None:
        return None
    roof, names = found.roof, ("device", "threads", "flops_per_second", "bytes_per_second")
    return {
        **picked(found, "is_on_gpu", "unknown_share", "unknown"),
        "roof": roof and {"origin": roof.origin, **picked(roof.peaks, *names)},
        **_to_dict(found, efficiency(view)),
    }


def _to_dict(found: Arithmetic | Efficiency, tables: tuple[Table, ...]) -> dict[str, object]:
    lines, shapes = tables
    return {**_work(found.total), "lines": lines.to_json(), "shapes": shapes.to_json()}


def _work(work: Work) -> dict[str, object]:
    return picked(
        work,
        *("flops", "time_ns", "calls", "flops_per_second", "bytes", "bytes_per_second", "of_peak"),
        flops_per_byte="intensity",
    )
