"""The tables of a report about work on a GPU: kernels, and the lines that launched them.

For a JAX program `jax_sections` prints the same facts, so these tables are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.metric import GPU_TIME_NS
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.ui.format import Elide, format_ns, format_share
from deepcontext.ui.report import sections
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.gpu import GpuUse
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_SUMMARY_LINES: Final = 4


def gpu_text(view: View) -> str:
    """Return ``"1.20 s in 4,800 kernels, copies and memsets"``, or "" without a GPU."""
    use = gpu_use(view.profile, 1)
    if use is None:
        return ""
    launches = f"{view.count(use.launches)} kernels, copies and memsets"
    return f"{view.time(use.time_ns)} in {launches}{view.each}"


def print_gpu(layout: TextLayout, view: View) -> None:
    """Print what used the GPU's time; nothing without GPU time or where JAX's sections show it."""
    use = gpu_use(view.profile, view.limit)
    if use is None or jax_programs.section(view.profile) is not None:
        return
    _print_kernels(layout, view, use)
    if view.metric != GPU_TIME_NS.name:  # otherwise the report shows these lines already
        sections.print_lines(
            layout, replace(view, metric=GPU_TIME_NS.name), "Source lines by GPU time"
        )


def print_gpu_summary(layout: TextLayout, view: View) -> None:
    """Print what the GPU did and for which lines, for the summary at a run's end."""
    if jax_programs.section(view.profile) is not None or not (text := gpu_text(view)):
        return
    layout.prose(f"on the GPU: {text}", "bold", indent="")


def _print_kernels(layout: TextLayout, view: View, use: GpuUse) -> None:
    if not use.kernels:
        return
    shown = sections.part_of(len(use.kernels), use.kernel_count)
    layout.title(f"Kernels, copies and memsets{shown}", "time on the GPU")
    columns = (
        Column("GPU time"),
        Column("share"),
        Column("launches", rank=1),
        Column("a launch", rank=2),
        Column("phases", rank=3),
        Column("name", Elide.MIDDLE),
    )
    cells = [
        (
            view.time(kernel.gpu_time_ns),
            format_share(kernel.gpu_time_ns / use.time_ns),
            view.count(kernel.launches or None),
            format_ns(kernel.mean_ns),
            sections.phase_mix(layout, kernel.phases),
            kernel.name,
        )
        for kernel in use.kernels
    ]
    layout.table(columns, cells)
