"""The part of a report about counters of the processor and the kernel, by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries import counters as counter_summary
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


def print_counters(layout: TextLayout, view: View) -> None:
    """Print the lines of the program at which the counters rose, if any counters were read."""
    profile = view.profile
    metrics = counter_summary.counted(profile)
    rows, count = counter_summary.by_line(profile, view.limit)
    if not rows:
        return
    note = "read at samples, including operators; without deeper lines of your code"
    layout.title(f"Counters{part_of(len(rows), count)}", note)
    has_ratio = any(row.instructions_per_cycle is not None for row in rows)
    columns = [Column(counter_summary.counter_name(metric)) for metric in metrics]
    ratio = [Column("per cycle")] if has_ratio else []
    layout.table(
        (*columns, *ratio, *source_columns()),
        [
            (
                *(view.count(row.counts[metric.name] or None) for metric in metrics),
                *([_ratio(row.instructions_per_cycle)] if has_ratio else []),
                *view.source_cells(row),
            )
            for row in rows
        ],
    )


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
