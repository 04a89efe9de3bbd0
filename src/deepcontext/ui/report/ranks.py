"""The part of a report about the ranks of a merged profile: their work, and where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.ui.format import Elide, format_count, format_ns, shorten_path
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


def print_ranks(layout: TextLayout, view: View) -> None:
    """Print what each rank did, and the lines that take longer on some ranks than on others."""
    profile, run = view.profile, view.profile.run
    rows = rank_summary.by_rank(profile)
    if not rows:
        return
    shown = "" if len(rows) <= view.limit else f" ({view.limit} of {format_count(len(rows))})"
    note = "running on any thread, waiting on the main thread; ranks wait for slower ones"
    layout.title(f"Ranks{shown}", note)
    layout.table(
        (Column("rank"), Column("operators"), Column("running"), Column("waiting")),
        [
            (
                str(row.rank),
                _time(row.operator_ns),
                _time(row.running_ns),
                _time(row.waiting_ns),
            )
            for row in rows[: view.limit]
        ],
    )
    lines = rank_summary.uneven_lines(profile, view.limit)
    if not lines:
        return
    layout.title("Lines by imbalance", "elapsed time of each rank, without deeper lines")
    layout.table(
        (
            Column("mean"),
            Column("least", rank=2),
            Column("of rank", rank=3),
            Column("most"),
            Column("of rank"),
            Column("line", Elide.START),
            Column("source", Elide.END, rank=5),
        ),
        [
            (
                _time(sum(line.by_rank) / len(line.by_rank)),
                _time(min(line.by_rank)),
                str(rows[line.by_rank.index(min(line.by_rank))].rank),
                _time(max(line.by_rank)),
                str(rows[line.by_rank.index(max(line.by_rank))].rank),
                f"{shorten_path(line.file, run.cwd)}:{line.line}",
                line_text(line.file, line.line, run.start_unix_ns or None),
            )
            for line in lines
        ],
    )


def _time(value_ns: float) -> str:
    return format_ns(value_ns) if value_ns else "-"
