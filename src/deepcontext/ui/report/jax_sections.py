"""The tables of a report about JAX, one function for each section.

`deepcontext.profiler.summaries.jax.programs` and `operations` compute the values.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.collectives import is_collective
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.ui.format import (
    Elide,
    format_bytes,
    format_count,
    format_ns,
    format_share,
    shorten_path,
)
from deepcontext.ui.report import path_view, sections
from deepcontext.ui.report.text_layout import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.place import Place
    from deepcontext.profiler.summaries.jax.operations import Member, Operation
    from deepcontext.profiler.summaries.jax.programs import Recompilation
    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

_GIGA: Final = 1e9
_FUSIONS_IN_FULL: Final = 5  # with every member; --json has all
_SUMMARY_ROWS: Final = 8
_CHANGES_SHOWN: Final = 3


def print_device_lines(layout: TextLayout, view: View) -> None:
    """Print phases and source lines by device time, unless the report shows these tables already."""
    device = replace(view, metric=jax_programs.device_metric(view.profile))
    if has_device_time(view) and view.metric != device.metric:
        sections.print_phases(layout, device, "Phases of the device time", with_calls=False)
        sections.print_lines(layout, device, "Source lines by device time")


def print_device_paths(layout: TextLayout, view: View) -> None:
    """Print the call paths by device time, unless the report shows them already."""
    device = replace(view, metric=jax_programs.device_metric(view.profile))
    if has_device_time(view) and view.metric != device.metric:
        path_view.print_total_paths(layout, device, "Call paths by device time")


def print_jax_summary(layout: TextLayout, view: View) -> None:
    """Print the device time of the compiled programs by path, for the summary at a run's end."""
    if jax_programs.section(view.profile) is None or not has_device_time(view):
        return
    functions = [f for f in jax_programs.jitted_functions(view.profile) if f.launches]
    launches = sum(function.launches for function in functions)
    total = jax_programs.device_accounting(view.profile).total
    device = replace(
        view, metric=jax_programs.device_metric(view.profile), limit=_SUMMARY_ROWS // 2
    )
    layout.prose(
        f"on the device: {view.time(total)} in {view.count(launches)} launches of "
        f"{format_count(len(functions))} jitted functions{view.each}; {_accounting(view)}",
        "bold",
        indent="",
    )
    sections.print_phase_bar(layout, device)
    path_view.print_tree(layout, device)


def has_device_time(view: View) -> bool:
    """Return whether any time inside compiled programs was measured."""
    return jax_programs.device_accounting(view.profile).total > 0


def _accounting(view: View) -> str:
    accounting = jax_programs.device_accounting(view.profile)
    text = f"{format_share(accounting.on_user_line / accounting.total)} of it is on your lines"
    parts = {
        "by the call alone": accounting.at_call,
        "inserted by the compiler, shown with the operation they serve": accounting.inserted,
    }
    shares = [f"{format_share(ns / accounting.total)} {what}" for what, ns in parts.items() if ns]
    return f"{text} ({', '.join(shares)})" if shares else text


def print_functions(layout: TextLayout, view: View) -> None:
    """Print the jitted functions, or nothing for a profile without any."""
    functions = jax_programs.jitted_functions(view.profile)
    if not functions:
        return
    total = jax_programs.device_accounting(view.profile).total
    layout.title(
        f"Jitted functions{_shown(view, functions)}",
        "device: inside the compiled program, summed over threads; host: in the call itself, "
        "without compilation",
    )
    columns = (
        Column("device"),
        Column("share"),
        Column("launches"),
        Column("host", rank=2),
        Column("compiled", rank=1),
        Column("phases", rank=3),
        Column("function", Elide.MIDDLE),
    )
    rows = [
        (
            # A function that never ran completely during a sampled window was counted, not timed.
            view.time(row.device_ns),
            format_share(row.device_ns / total if row.device_ns else None),
            view.count(row.launches),
            view.time(row.dispatch_ns),
            f"{row.compilations}x {format_ns(row.compile_ns)}" if row.compilations else "-",
            sections.phase_mix(layout, [row.phases.get(p, 0) for p in sections.PHASE_NAMES]),
            row.name,
        )
        for row in functions[: view.limit]
    ]
    layout.table(columns, rows)
    if total:
        layout.prose(f"device time: {_accounting(view)}", "dim")


def print_operations(layout: TextLayout, view: View) -> None:
    """Print the costliest operations of compiled programs, and the fusions of several source lines."""
    operations = jax_operations.operations(view.profile)
    if not operations or not has_device_time(view):
        return
    shown = operations[: view.limit]
    note = "flop/byte: arithmetic intensity, from the shapes; GFLOP/s and GB/s: attained"
    if any(is_collective(each.opcode, each.name) for each in shown):
        note += "; the time of collectives contains waiting for slower processes"
    if any(each.is_estimated for each in shown):
        note += "; ~: estimated, because a loop or branch was seen in some launches only"
    layout.title(f"Operations of compiled programs{_shown(view, operations)}", note)
    columns = (
        Column("device"),
        Column("runs"),
        Column("flop", rank=5),
        Column("bytes", rank=4),
        Column("flop/byte", rank=1),
        Column("GFLOP/s", rank=2),
        Column("GB/s", rank=3),
        Column("operation", Elide.END),
        Column("line", Elide.START),
    )
    layout.table(columns, [_operation_row(view, each) for each in shown])
    _print_fusions(layout, view)


def _operation_row(view: View, operation: Operation) -> tuple[str, ...]:
    more = f" +{operation.source_lines - 1}" if operation.source_lines > 1 else ""
    return (
        view.time(operation.device_ns),
        "~" * operation.is_estimated + view.count(operation.executions),
        format_count(operation.flops or None),
        format_bytes(operation.bytes or None),
        f"{operation.intensity:.2f}" if operation.bytes else "-",
        f"{operation.flops_per_second / _GIGA:.2f}" if operation.flops else "-",
        f"{operation.bytes_per_second / _GIGA:.2f}" if operation.bytes else "-",
        f"{operation.name} in {operation.program}",
        _place(view, operation.source) + more,
    )


def _print_fusions(layout: TextLayout, view: View) -> None:
    fusions = jax_operations.fusions(view.profile, several_lines=True)
    if not fusions:
        return
    shown = fusions[: min(_FUSIONS_IN_FULL, view.limit)]
    count = sections.part_of(len(shown), len(fusions))
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
    where = _place(view, row.path[-1]) if row.path else "no line of your code"
    why = "; ".join(row.changes[:_CHANGES_SHOWN]) or "the reason is unknown"
    if len(row.changes) > _CHANGES_SHOWN:
        why += f"; and {format_count(len(row.changes) - _CHANGES_SHOWN)} more changes, see --json"
    return f"{format_count(row.count)}x, {format_ns(row.spent_ns)}, needed at {where}: {why}"


def print_transfers(layout: TextLayout, view: View) -> None:
    """Print waits for the device, and copies between device and host."""
    rows = jax_programs.transfers(view.profile)
    if not rows:
        return
    layout.title(
        f"Waits and copies{_shown(view, rows)}", "host: how long the line blocked the program"
    )
    columns = (
        Column("host"),
        Column("times"),
        Column("bytes", rank=1),
        Column("what", Elide.END),
        Column("line", Elide.START),
    )
    cells = [
        (
            view.time(row.host_ns) if row.what != jax_programs.HOST_ARGUMENTS else "in the call",
            view.count(row.count),
            view.value(row.bytes, "bytes") if row.bytes else "-",
            row.what,
            _place(view, row.source),
        )
        for row in rows[: view.limit]
    ]
    layout.table(columns, cells)


def _place(view: View, source: Place) -> str:
    if not source.file:
        return "no line of your code"
    return f"{shorten_path(source.file, view.profile.run.cwd)}:{source.line}"


def _shown(view: View, rows: Sequence[object]) -> str:
    return sections.part_of(min(view.limit, len(rows)), len(rows))
