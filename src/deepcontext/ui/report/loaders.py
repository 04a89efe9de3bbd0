"""The report's section about DataLoader workers: time of a batch, where it is spent, and who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.source import line_text
from deepcontext.ui.format import Elide, format_count, format_ns, format_share, shorten_path
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.summaries.loader_workers import LoaderTime
    from deepcontext.ui.report.text_layout import TextLayout

_MOST: Final = 3
_LEAST_SHARE: Final = 0.01


def print_loaders(layout: TextLayout, loaders: Sequence[LoaderTime], cwd: str) -> None:
    """Print how long batches take, and where; of the loops that wait longest.

    Args:
        layout: where to print.
        loaders: loops and their workers, the most waiting first.
        cwd: folder to which paths are relative.
    """
    for loader in loaders[:_MOST]:
        layout.title(f"DataLoader workers of process {loader.pid}", "elapsed time of all workers")
        layout.prose(_sentence(loader, cwd))
        layout.table(
            (
                Column("time"),
                Column("share"),
                Column("line", Elide.START),
                Column("source", Elide.END, rank=1),
            ),
            [
                (
                    format_ns(value),
                    format_share(value / (loader.making_ns or 1)),
                    _place(frame, cwd),
                    line_text(frame.file, frame.line) or frame.name,
                )
                for frame, value in loader.lines
                if value >= _LEAST_SHARE * loader.making_ns
            ],
        )
    if len(loaders) > _MOST:
        layout.prose(f"{len(loaders) - _MOST} more loops with workers wait less")


def _sentence(loader: LoaderTime, cwd: str) -> str:
    every = format_ns(loader.batch_ns // loader.at_once)
    together = f", so {loader.at_once} workers make a batch every {every}"
    where = " and ".join(_place(frame, cwd) for frame in loader.loops)
    return (
        f"one worker takes {format_ns(loader.batch_ns)} for a batch{together * (loader.at_once > 1)}; "
        f"the loop at {where or 'an unknown line'} waits {format_ns(loader.wait_for_batch_ns or None)} for "
        f"each of {format_count(loader.batch_count)} batches"
    )


def _place(frame: Frame, cwd: str) -> str:
    path = shorten_path(frame.file, cwd)
    return f"{path.rpartition('/site-packages/')[2]}:{frame.line}"
