"""The parts of a report about work on a GPU: kernels, and the lines that launched them.

For a JAX program `jax_sections` prints the same facts, so these are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepcontext.profiler.format.metric import GPU_TIME_NS
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.sections import groups
from deepcontext.ui.sections.table import Unit

if TYPE_CHECKING:
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.view import View


def gpu_text(view: View) -> str:
    """Return ``"1.20 s in 4,800 kernels, copies and memsets"``, or "" without a GPU."""
    use = gpu_use(view.profile, 1)
    if use is None:
        return ""
    launches = f"{view.text_of(use.launches, Unit.COUNT)} kernels, copies and memsets"
    return f"{view.time(use.time_ns)} in {launches}{view.each}"


def print_gpu(layout: TextLayout, view: View) -> None:
    """Print what used the GPU's time; nothing without GPU time or where JAX's sections show it."""
    kernels = groups.kernels(view)
    if kernels is None or jax_programs.section(view.profile) is not None:
        return
    print_table(layout, kernels)
    if view.metric != GPU_TIME_NS.name:  # otherwise the report shows these lines already
        of_gpu = replace(view, metric=GPU_TIME_NS.name)
        print_table(layout, groups.lines(of_gpu, "Source lines by GPU time"))


def print_gpu_summary(layout: TextLayout, view: View) -> None:
    """Print what the GPU did, for the summary at a run's end."""
    if jax_programs.section(view.profile) is None and (text := gpu_text(view)):
        layout.prose(f"on the GPU: {text}", "bold", indent="")
