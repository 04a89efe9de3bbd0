"""Memory of tensors: lines that hold it at the peak, and lines at which it grew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.ui.sections.table import Column, Table, Unit, picked
from deepcontext.ui.sections.view import line_of

if TYPE_CHECKING:
    from deepcontext.ui.sections.view import View


def holders(view: View, prefix: str) -> Table:
    """Return the lines that hold the memory of the host or, by its prefix, of a device at the peak."""
    found = memory_summary.held_at_peak(view.profile, prefix, view.limit)
    total = found.total if found else 0
    return Table(
        "",
        "",
        (
            Column("peak_bytes", "on device at peak" if prefix else "at peak", Unit.BYTES),
            Column("share", "share", Unit.SHARE),
            *view.line_columns(rank=1),
        ),
        [
            {
                **line_of(row),
                "peak_bytes": row.exclusive,
                "share": row.exclusive / total if total else 0.0,
            }
            for row in (found.rows if found else ())
            if row.exclusive
        ],
    )


def growth(view: View, prefix: str, *, only_leaks: bool = False) -> Table:
    """Return the lines at which the memory of the host, or of a device, grew, or those that may leak."""
    return Table(
        "",
        "",
        (
            Column("growth_bytes", "device memory grew" if prefix else "grew", Unit.BYTES),
            Column(lambda row: row["growth_bytes"] / row["steps"], "a step", Unit.BYTES, rank=2),
            Column(lambda row: f"{row['grown_steps']} of {row['steps']}", "steps", Unit.NUMBER),
            Column(lambda row: "leak?" * row["is_leak"], "", Unit.TEXT, rank=3),
            *view.line_columns(rank=1),
        ),
        [
            picked(
                grown,
                *("file", "line", "function", "grown_steps", "steps", "is_leak"),
                growth_bytes="size_bytes",
            )
            for grown in memory_summary.growth(
                view.profile, prefix, view.limit, only_leaks=only_leaks
            )
        ],
    )


def memory_to_dict(view: View) -> dict[str, object] | None:
    """Return the memory of the run, None if it was not tracked."""
    use = memory_summary.memory_use(view.profile)
    if use is None:
        return None
    return {
        **picked(use, "steps", "step_kind", "growth_since_step", "untracked_bytes", "pools"),
        **{
            f"{prefix}lines": {
                "held_at_peak": holders(view, prefix).rows,
                "growth": growth(view, prefix).rows,
            }
            for prefix in memory_summary.prefixes(view.profile)
        },
    }
