"""The part of a report about packages below the one line of user code that includes all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries.library_time import library_time
from deepcontext.ui.format import format_share, shorten_path
from deepcontext.ui.report.sections import part_of, source_columns
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.library_time import LibraryTime
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_MOST_PACKAGES: Final = 4
_LEAST_SHARE: Final = 0.01


def print_below(layout: TextLayout, view: View) -> None:
    """Print the packages and their lines below the one line of user code, if there is such a line."""
    found = library_time(view.profile, view.limit)
    if found is None:
        return
    shown = part_of(len(found.lines), found.line_count)
    layout.title(f"Lines of packages{shown}", "elapsed time without deeper lines of packages")
    layout.prose(_packages(view, found))
    _print_lines(layout, view, found)


def print_below_summary(layout: TextLayout, view: View) -> None:
    """Print the same for the summary at a run's end."""
    found = library_time(view.profile, view.limit)
    if found is not None:
        layout.prose(_packages(view, found), "bold", indent="")
        _print_lines(layout, view, found)


def _packages(view: View, found: LibraryTime) -> str:
    """Return ``"below train.py:12, 7.10 s: transformers 83.1 %, accelerate 12.0 %"``."""
    line = found.line
    where = "outside your code"
    if line is not None:
        where = f"below {shorten_path(line.file, view.profile.run.cwd)}:{line.line}"
    shares = [(name, time_ns / found.time_ns) for name, time_ns in found.packages]
    named = [
        f"{name} {format_share(share)}"
        for name, share in shares[:_MOST_PACKAGES]
        if share >= _LEAST_SHARE
    ]
    return f"{where}, {view.time(found.time_ns)}{view.each}: {', '.join(named)}"


def _print_lines(layout: TextLayout, view: View, found: LibraryTime) -> None:
    started_ns = view.profile.run.start_unix_ns or None
    layout.table(
        (
            Column("elapsed"),
            Column("share"),
            *source_columns("line of a package", rank=1),
        ),
        [
            (
                view.time(row.time_ns),
                format_share(row.time_ns / found.time_ns),
                f"{row.path}:{row.frame.line}",
                line_text(row.frame.file, row.frame.line, started_ns),
            )
            for row in found.lines
            if row.time_ns >= _LEAST_SHARE * found.time_ns
        ],
    )
