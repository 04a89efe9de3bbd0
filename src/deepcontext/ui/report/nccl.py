"""The part of a report about collectives as NCCL itself tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries import nccl
from deepcontext.ui.format import Elide, format_bytes, format_count, format_ns, format_rate
from deepcontext.ui.report.sections import part_of
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.nccl import NcclCalls
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout


def print_nccl(layout: TextLayout, view: View) -> None:
    """Print algorithms and bandwidths; nothing where NCCL was not asked."""
    found = nccl.by_algorithm(view.profile)
    if not found:
        return
    rows = found[: view.limit]
    layout.title(
        f"Collectives of NCCL{part_of(len(rows), len(found))}{view.of_run}",
        "kernels wait for slower ranks, too; bandwidths as nccl-tests has them",
    )
    layout.table(
        (
            Column("kernels"),
            Column("shortest", rank=3),
            Column("calls"),
            Column("algorithm bandwidth", rank=4),
            Column("bus", rank=2),
            Column("proxies", rank=4),
            Column("members", rank=3),
            Column("operation", Elide.END),
        ),
        [
            (
                format_ns(row.kernel_ns or None),
                format_ns(row.shortest_ns or None),
                format_count(row.calls),
                format_rate(row.bytes_per_s),
                format_rate(row.bus_bytes_per_s),
                format_ns(row.proxy_ns or None),
                str(row.members or ""),
                _operation(row),
            )
            for row in rows
        ],
    )


def _operation(row: NcclCalls) -> str:
    parts = (row.function, format_bytes(row.size_bytes), row.algorithm, row.protocol)
    return " ".join(filter(None, parts))
