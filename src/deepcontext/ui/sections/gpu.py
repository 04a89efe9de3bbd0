"""What compilers and libraries of GPUs did: kernels of `torch.compile`, and collectives of NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.summaries.compiled_kernels import compiled_kernels, time_metric
from deepcontext.profiler.summaries.nccl import by_algorithm
from deepcontext.ui.compiled_kernels import lines_text, operators_text
from deepcontext.ui.format import format_bytes
from deepcontext.ui.labels import metric_label
from deepcontext.ui.sections.table import Column, Table, Unit, picked, plain, share
from deepcontext.ui.sections.view import line_of

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.compiled_kernels import CompiledKernel
    from deepcontext.ui.sections.table import Row
    from deepcontext.ui.sections.view import View

_MOST_COMPILED: Final = 5
_HOW: Final = "INDUCTOR_PROVENANCE=1 gives the lines of every kernel; torch then compiles again"


def compiled(view: View) -> Table | None:
    """Return the kernels of `torch.compile` and the lines fused into each; None without kernels."""
    profile, kernels = view.profile, compiled_kernels(view.profile)
    if not kernels:
        return None
    metric = time_metric(profile)
    rows = [
        {
            **_compiled(each),
            "shown_lines": lines_text(each, profile.run.cwd) or "-",
            "shown_operators": operators_text(each),
        }
        for each in kernels
        if each.lines or each.time_ns
    ]
    return view.table(
        "Kernels of torch.compile",
        "and the lines of the program fused into each",
        (
            Column("time_ns", metric_label(metric), Unit.NS),
            share("time_ns", total(profile, metric)),
            Column("calls", "calls", Unit.COUNT, rank=4),
            Column("shown_lines", "lines", Unit.PATH),
            Column("name", "kernel", Unit.TEXT),
            Column("shown_operators", "operators", Unit.TEXT, rank=5),
        ),
        rows[: min(view.limit, _MOST_COMPILED)],
        row_count=len(kernels),
        above="" if rows else f"{len(kernels)} kernels; their times and lines are unknown",
        below="" if all(each.is_complete for each in kernels) else _HOW,
    )


def compiled_to_dict(view: View) -> dict[str, object] | None:
    """Return all kernels of `torch.compile`, None without any."""
    kernels = compiled_kernels(view.profile)
    if not kernels:
        return None
    rows = [_compiled(each) for each in kernels[: view.limit or None]]
    return {"row_count": len(kernels), "metric": time_metric(view.profile), "rows": rows}


def _compiled(kernel: CompiledKernel) -> Row:
    return {
        **picked(kernel, "name", "time_ns", "calls", "operators", "is_complete"),
        "lines": [line_of(frame) for frame in kernel.lines],
    }


def nccl(view: View) -> Table | None:
    """Return algorithms and bandwidths of the run; None where NCCL was not asked."""
    rows = nccl_rows(view)
    if not rows:
        return None
    return Table(
        "Collectives of NCCL",
        "kernels wait for slower ranks, too; bandwidths as nccl-tests has them",
        (
            Column("kernel_ns", "kernels", Unit.NS),
            Column("shortest_ns", "shortest", Unit.NS, rank=3),
            Column("calls", "calls", Unit.COUNT),
            Column("bytes_per_s", "algorithm bandwidth", Unit.RATE, rank=4),
            Column("bus_bytes_per_s", "bus", Unit.RATE, rank=2),
            Column("proxy_ns", "proxies", Unit.NS, rank=4),
            Column("members", "members", Unit.ONE_COUNT, rank=3),
            Column(_operation, "operation", Unit.TEXT),
        ),
        rows[: view.limit],
        len(rows),
        of=view.of_run,
    )


def nccl_rows(view: View) -> list[Row]:
    """Return the calls of all ranks in the profile."""
    return [plain(row) for row in by_algorithm(view.profile)]


def _operation(row: Row) -> str:
    parts = (row["function"], format_bytes(row["size_bytes"]), row["algorithm"], row["protocol"])
    return " ".join(filter(None, parts))
