"""The parts of a report about JAX that are more than a table of `ui/sections/jax.py`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.ui.format import format_count, format_ns, part_of
from deepcontext.ui.report import path_view, phases
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.sections import groups, jax
from deepcontext.ui.sections.table import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.place import Place
    from deepcontext.profiler.summaries.jax.operations import Member
    from deepcontext.profiler.summaries.jax.programs import Recompilation
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.view import View

_FUSIONS_IN_FULL: Final = 5  # with every member; --json has all
_SUMMARY_ROWS: Final = 8
_CHANGES_SHOWN: Final = 3


def print_device_lines(layout: TextLayout, view: View) -> None:
    """Print phases and source lines by device time, unless the report shows these tables already."""
    device = replace(view, metric=jax_programs.device_metric(view.profile))
    if jax.has_device_time(view) and view.metric != device.metric:
        phases.print_phases(layout, device, "Phases of the device time", with_calls=False)
        print_table(layout, groups.lines(device, "Source lines by device time"))


def print_device_paths(layout: TextLayout, view: View) -> None:
    """Print the call paths by device time, unless the report shows them already."""
    device = replace(view, metric=jax_programs.device_metric(view.profile))
    if jax.has_device_time(view) and view.metric != device.metric:
        path_view.print_total_paths(layout, device, "Call paths by device time")


def print_jax_summary(layout: TextLayout, view: View) -> None:
    """Print the device time of the compiled programs by path, for the summary at a run's end."""
    if jax_programs.section(view.profile) is None or not jax.has_device_time(view):
        return
    functions = [f for f in jax_programs.jitted_functions(view.profile) if f.launches]
    launches = sum(function.launches for function in functions)
    total = jax_programs.device_accounting(view.profile).total
    device = replace(
        view, metric=jax_programs.device_metric(view.profile), limit=_SUMMARY_ROWS // 2
    )
    times = view.text_of(launches, Unit.COUNT)
    layout.prose(
        f"on the device: {view.time(total)} in {times} {'launch' if times == '1' else 'launches'} of "
        f"{format_count(len(functions))} jitted function{'' if len(functions) == 1 else 's'}"
        f"{view.each}; {jax.accounting_text(view)}",
        "bold",
        indent="",
    )
    phases.print_phase_bar(layout, device)
    path_view.print_tree(layout, device)


def print_operations(layout: TextLayout, view: View) -> None:
    """Print the costliest operations of compiled programs, and the fusions of several source lines."""
    operations = jax.operations(view)
    print_table(layout, operations)
    if operations.rows:
        _print_fusions(layout, view)


def _print_fusions(layout: TextLayout, view: View) -> None:
    fusions = jax_operations.fusions(view.profile, several_lines=True)
    if not fusions:
        return
    shown = fusions[: min(_FUSIONS_IN_FULL, view.limit)]
    count = part_of(len(shown), len(fusions))
    layout.title(f"Fusions of several source lines{count}", "every member, by line; --json has all")
    for fusion in shown:
        layout.prose(
            f"{view.time(fusion.device_ns)}, {fusion.phase}, {fusion.source_lines} lines: "
            f"{_members(fusion.members)}",
            hanging=f"{fusion.name}: ",
        )


def _members(members: Sequence[Member]) -> str:
    """Return ``layers.py:8 mul, add 3x; layers.py:12 sub``: members in order, by line."""
    by_line: dict[Place, dict[str, int]] = {}
    for member in members:
        counts = by_line.setdefault(member.source, {})
        counts[member.primitive] = counts.get(member.primitive, 0) + 1
    return "; ".join(
        f"{_short(source)} "
        + ", ".join(f"{name} {count}x" if count > 1 else name for name, count in counts.items())
        for source, counts in by_line.items()
    )


def _short(source: Place) -> str:
    return f"{PurePath(source.file).name}:{source.line}" if source.file else "without a line:"


def print_recompilations(layout: TextLayout, view: View) -> None:
    """Print what was compiled again, and why."""
    rows = jax_programs.recompilations(view.profile)
    if not rows:
        return
    count, total = sum(row.count for row in rows), sum(row.spent_ns for row in rows)
    title = f"Recompilations: {format_count(count)}, {format_ns(total)}{view.of_run}"
    layout.title(title, "longest first")
    for row in rows[: view.limit]:
        layout.prose(_recompilation(view, row), hanging=f"{row.function}: ")
    if len(rows) > view.limit:
        layout.line(f"  not shown: {len(rows) - view.limit} more reasons", "dim")


def _recompilation(view: View, row: Recompilation) -> str:
    where = view.place(asdict(row.path[-1])) if row.path else "no line of your code"
    why = "; ".join(row.changes[:_CHANGES_SHOWN]) or "the reason is unknown"
    if len(row.changes) > _CHANGES_SHOWN:
        why += f"; and {format_count(len(row.changes) - _CHANGES_SHOWN)} more changes, see --json"
    return f"{format_count(row.count)}x, {format_ns(row.spent_ns)}, needed at {where}: {why}"
