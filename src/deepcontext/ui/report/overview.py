"""The report on one or two screens: the sections that show what to look at next.

Invariants: at most `MOST_LINES` lines, unless the warnings and findings alone are longer; the last line
names the sections that are left out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.ui.report import (
    account,
    arithmetic,
    below,
    between,
    compiled_sections,
    counters,
    findings,
    gpu_sections,
    header,
    jax_memory_sections,
    jax_sections,
    memory,
    nccl,
    path_view,
    ranks,
    sections,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

    Printer = Callable[[TextLayout, View], None]

MOST_LINES: Final = 80
# A blank line, names of the sections and columns left out, and the suggested commands.
_CLOSING_LINES: Final = 6
# Numbers of rows per table, tried in this order until all sections fit.
_ROWS: Final = (8, 7, 6, 5)
# Numbers of rows that are then tried for a section that does not fit.
_FEWER_ROWS: Final = (4, 3)
_FEWEST_ROWS: Final = 3
# The sections below the findings, each with a number of rows to add to the tried number.
SECTIONS: Final[dict[str, tuple[Printer, int]]] = {
    "packages": (below.print_below, -1),
    "jitted functions": (jax_sections.print_functions, -1),
    "device time of JAX": (jax_sections.print_device_lines, -1),
    "operations of JAX": (jax_sections.print_operations, -1),
    "recompilations": (jax_sections.print_recompilations, -1),
    "waits and copies of JAX": (jax_sections.print_transfers, -1),
    "call paths by device time": (jax_sections.print_device_paths, -1),
    "GPU": (gpu_sections.print_gpu, 0),
    "NCCL": (nccl.print_nccl, -2),
    "torch.compile": (compiled_sections.print_compiled, -4),
    "floating-point operations": (arithmetic.print_arithmetic, -3),
    "phases": (lambda layout, view: sections.print_phase_bar(layout, view, "Phases"), 0),
    "ranks": (ranks.print_ranks, -1),
    "source lines": (sections.print_lines, 2),
    "operators": (sections.print_operators, 0),
    "modules": (sections.print_modules, -2),
    "time between operators": (between.print_between_lines, -2),
    "counters": (counters.print_counters, -1),
    "call paths": (path_view.print_paths, -2),
    "memory": (memory.print_memory, -2),
    "memory of JAX": (jax_memory_sections.print_jax_memory, -2),
}
# The account of elapsed time, printed first, has what these would show of it.
_IN_ACCOUNT: Final = ("source lines", "phases", "time between operators")
_OF_HOST: Final = (HOST_TIME_NS.name, ELAPSED_TIME_NS.name)
# If all sections do not fit, they get room in this order.
_BY_IMPORTANCE: Final = (
    "source lines",
    "jitted functions",
    "device time of JAX",
    "packages",
    "recompilations",
    "waits and copies of JAX",
    "operations of JAX",
    "GPU",
    "torch.compile",
    "floating-point operations",
    "ranks",
    "operators",
    "call paths",
    "memory",
    "modules",
    "memory of JAX",
    "call paths by device time",
    "phases",
    "time between operators",
    "NCCL",
    "counters",
)


def print_overview(
    layout: TextLayout, view: View, warnings: Sequence[str], most_lines: int
) -> None:
    """Print the most important sections of a profile in `most_lines`; tables have the rows that fit."""
    top = _top(layout, view, warnings)
    trust = _printed(layout, lambda: header.print_trust_summary(layout, view.profile.trust))
    room = most_lines - len(top) - len(trust) - _CLOSING_LINES
    parts: dict[str, list[str]] = {}
    left = _IN_ACCOUNT if view.metric in _OF_HOST else ()
    for rows in _ROWS:
        layout.hidden_columns.clear()
        parts = {name: _section(layout, view, name, rows) for name in SECTIONS if name not in left}
        if sum(map(len, parts.values())) <= room:
            break
    kept = _fitting(layout, view, parts, room)
    left_out = [name for name, part in parts.items() if part and not kept[name]]
    whole = _printed(layout, lambda: header.print_trust(layout, view.profile.trust))
    if sum(map(len, kept.values())) + len(whole) <= room + len(trust):
        trust = whole
    for part in (top, *kept.values(), trust):
        layout.console.file.write("".join(part))
    layout.line()
    if left_out:
        layout.prose(f"left out: {', '.join(left_out)}", "dim", indent="")


def _top(layout: TextLayout, view: View, warnings: Sequence[str]) -> list[str]:
    """Return the first part, with fewer rows where there are many warnings."""
    part: list[str] = []
    for rows in (*_ROWS, _FEWEST_ROWS):
        part = _printed(layout, partial(_print_top, layout, view, warnings, rows))
        if len(part) <= MOST_LINES // 2:
            break
    return part


def _print_top(layout: TextLayout, view: View, warnings: Sequence[str], rows: int) -> None:
    header.print_short_header(layout, view)
    account.print_verdicts(layout, view)
    header.print_all_warnings(layout, warnings)
    account.print_account(layout, replace(view, limit=rows))
    findings.print_summary(layout, view)


def _section(layout: TextLayout, view: View, name: str, rows: int) -> list[str]:
    printer, more = SECTIONS[name]
    return _printed(
        layout, lambda: printer(layout, replace(view, limit=max(rows + more, _FEWEST_ROWS)))
    )


def _printed(layout: TextLayout, print_part: Callable[[], None]) -> list[str]:
    """Return the lines that a part prints, with their line ends."""
    with layout.console.capture() as captured:
        print_part()
    return captured.get().splitlines(keepends=True)


def _fitting(
    layout: TextLayout, view: View, parts: Mapping[str, list[str]], room: int
) -> dict[str, list[str]]:
    """Return the sections in as many rows as fit, the most important first; [] for what does not fit."""
    kept: dict[str, list[str]] = {}
    for name in _BY_IMPORTANCE:
        part = parts.get(name, [])
        for rows in _FEWER_ROWS:
            if len(part) <= room:
                break
            part = _section(layout, view, name, rows)
        kept[name] = part if len(part) <= room else []
        room -= len(kept[name])
    return {name: kept[name] for name in SECTIONS}
