"""The tables of a report about work on a GPU: kernels, and the lines that caused them.

JAX's own sections say the same of its programs (`jax_sections`); theirs are printed instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deepcontext.profiler import jax_summary, summary
from deepcontext.ui.format import Elide, format_count, format_ns, format_share
from deepcontext.ui.report import sections
from deepcontext.ui.report.page import Column

if TYPE_CHECKING:
    from deepcontext.profiler.profile import Profile
    from deepcontext.ui.report.page import Page
    from deepcontext.ui.report.sections import View

_GPU_TIME: Final = "gpu_time_ns"
_LAUNCHES: Final = "launch_count"
_SUMMARY_LINES: Final = 4


def has_gpu_time(profile: Profile) -> bool:
    """Say whether any work on a GPU was measured."""
    return _sum(profile, _GPU_TIME) > 0


def gpu_text(profile: Profile) -> str:
    """Return ``"1.20 s in 4,800 kernels, copies and memsets"``, or "" without a GPU."""
    if not has_gpu_time(profile):
        return ""
    launches = format_count(_sum(profile, _LAUNCHES))
    return f"{format_ns(_sum(profile, _GPU_TIME))} in {launches} kernels, copies and memsets"


def print_gpu(page: Page, view: View) -> None:
    """Print what took the GPU's time, or nothing where JAX's sections say it or there is none."""
    if not _is_shown(view.profile):
        return
    _print_kernels(page, view)
    if view.metric != _GPU_TIME:  # else these are the report's own
        sections.print_lines(page, replace(view, metric=_GPU_TIME), "Source lines by GPU time")


def print_gpu_summary(page: Page, view: View) -> None:
    """Print what the GPU did and for which lines, in the few lines of a run's end."""
    if not _is_shown(view.profile):
        return
    page.prose(f"on the GPU: {gpu_text(view.profile)}", "bold", indent="")
    sections.print_own_lines(page, replace(view, metric=_GPU_TIME, limit=_SUMMARY_LINES))


def _is_shown(profile: Profile) -> bool:
    return has_gpu_time(profile) and jax_summary.section(profile) is None


def _print_kernels(page: Page, view: View) -> None:
    table = summary.by_kernel(view.profile, _GPU_TIME, view.limit)
    if not table.rows:
        return
    launches: dict[str, int] = {}
    if _LAUNCHES in view.profile.metrics:
        counted = summary.by_kernel(view.profile, _LAUNCHES)
        launches = {row.name: row.exclusive for row in counted.rows}
    page.title(f"Kernels, copies and memsets{sections.shown(table)}", "time on the GPU")
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
            format_ns(row.exclusive),
            format_share(row.exclusive / table.total if table.total else None),
            format_count(launches.get(row.name)),
            format_ns(row.exclusive / launches[row.name]) if launches.get(row.name) else "-",
            sections.phase_mix(page, row.phases),
            row.name,
        )
        for row in table.rows
        if row.exclusive
    ]
    page.table(columns, cells)


def _sum(profile: Profile, metric: str) -> int:
    return int(profile.exclusive(metric).sum()) if metric in profile.metrics else 0
