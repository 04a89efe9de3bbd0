"""The report for programs: one JSON-able object.

Its keys are documented in docs/reference/report-json.md. A key keeps its name and meaning within
one `version`; new keys may be added. Times are integers of ns, shares are 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries import (
    collectives,
    communication,
    late_ranks,
    nccl,
    ranks,
    time_between_operators,
)
from deepcontext.profiler.summaries import counters as counter_summary
from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.compiled_kernels import compiled_kernels, time_metric
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.late_places import late_places
from deepcontext.profiler.summaries.library_time import library_time
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.operators import operator_time
from deepcontext.profiler.summaries.phases import PHASES, by_phase
from deepcontext.profiler.summaries.setup_time import setup_time
from deepcontext.profiler.summaries.steps import step_times
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.ui.report.machine_account import account_to_dict, basis_to_dict
from deepcontext.ui.report.machine_jax import jax_to_dict
from deepcontext.ui.report.machine_steps import kept_steps_to_dict
from deepcontext.ui.report.machine_work import arithmetic_to_dict, efficiency_to_dict

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.grouping import Spread
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.counters import LineCounts
    from deepcontext.profiler.summaries.groups import Group, GroupTable
    from deepcontext.profiler.summaries.late_places import LatePlace
    from deepcontext.profiler.summaries.late_ranks import RankDelays
    from deepcontext.profiler.summaries.operator_work import LineWork
    from deepcontext.profiler.summaries.ranks import UnevenLine
    from deepcontext.profiler.summaries.time_between_operators import LineTime
    from deepcontext.ui.report.sections import SourceRow

FORMAT: Final = "deepcontext report"
VERSION: Final = 2
# Of a late rank.
_MOST_PLACES: Final = 3
_OF_RANK: Final = ("rank", "operator_ns", "running_ns", "waiting_ns")
# For these tables the report has more than their groups.
_WITH_SECTIONS: Final = frozenset({"line", "kernel"})


def report_to_dict(profile: Profile, *, limit: int, metric: str | None = None) -> dict[str, object]:
    """Return the content of `render_report`, as a dict of JSON's types without NaN or infinity.

    Args:
        profile: the profile.
        limit: rows of each table.
        metric: the metric the tables are ordered by; None for `default_metric`.

    Raises:
        QueryError: the profile has no such metric; the message lists its metrics.
    """
    basis = basis_of(profile)
    run, profile = basis.whole, basis.profile
    metric = metric or default_metric(profile)
    phases = by_phase(profile, metric)
    descriptor = profile.metrics[metric].descriptor
    total = sum(row.value for row in phases)
    return {
        "format": FORMAT,
        "version": VERSION,
        "metric": {
            "name": descriptor.name,
            "unit": descriptor.unit,
            "description": descriptor.description,
        },
        "run": _plain(run.run),
        "basis": basis_to_dict(profile),
        "account": account_to_dict(profile, limit),
        "total": total,
        "operator_time_ns": operator_time(profile),
        "operator_calls": sum(row.operator_calls for row in phases),
        "set_up": _set_up(run),
        "steps": _spread(step_times(run)),
        "kept_steps": kept_steps_to_dict(run, limit),
        "phases": [
            {
                "phase": row.phase.label,
                "value": row.value,
                "share": _share(row.value, total),
                "operator_calls": row.operator_calls,
            }
            for row in phases
        ],
        "lines": _lines(profile, by_line(profile, metric, limit)),
        "below": _below(profile, limit),
        **{
            table.plural: _groups(table.make(profile, metric, limit))
            for name, table in TABLES.items()
            if name not in _WITH_SECTIONS
        },
        "jax": jax_to_dict(profile, limit),
        "gpu": _gpu(profile, limit),
        "compiled_kernels": _compiled_kernels(profile, limit),
        "arithmetic": arithmetic_to_dict(profile, limit, _place),
        "efficiency": efficiency_to_dict(profile, limit, _place),
        "nccl": [_plain(row) for row in nccl.by_algorithm(profile)],
        "ranks": _ranks(profile, limit),
        "time_use": _time_use(profile, limit),
        "counter_use": _counter_use(profile, limit),
        "paths": {
            "inclusive": _paths(profile, metric, limit, inclusive=True),
            "exclusive": _paths(profile, metric, limit, inclusive=False),
        },
        "memory": _memory(run, limit),
        "trust": {**_plain(profile.trust), "warnings": list(profile.trust.warnings)},
    }


def _groups(table: GroupTable) -> dict[str, object]:
    rows = [
        {"name": row.name, **_values(row, table.total), "call_ns": _spread(row.calls)}
        for row in table.rows
    ]
    return {"row_count": table.row_count, "rows": rows}


def _lines(profile: Profile, table: GroupTable) -> dict[str, object]:
    rows = [
        {**_line(row), "source": _source(profile, row), **_values(row, table.total)}
        for row in table.rows
    ]
    return {"row_count": table.row_count, "rows": rows}


def _gpu(profile: Profile, limit: int) -> dict[str, object] | None:
    use = gpu_use(profile, limit)
    if use is None:
        return None
    rows = [
        {
            "name": kernel.name,
            "gpu_time_ns": kernel.gpu_time_ns,
            "share": kernel.gpu_time_ns / use.time_ns,
            "launches": kernel.launches,
            "phases": {
                phase.label: value for phase, value in zip(PHASES, kernel.phases, strict=True)
            },
        }
        for kernel in use.kernels
    ]
    return {
        "time_ns": use.time_ns,
        "launches": use.launches,
        "kernels": {"row_count": use.kernel_count, "rows": rows},
    }


def _compiled_kernels(profile: Profile, limit: int) -> dict[str, object] | None:
    kernels = compiled_kernels(profile)
    if not kernels:
        return None
    rows = [
        {
            "name": kernel.name,
            "time_ns": kernel.time_ns,
            "calls": kernel.calls,
            "operators": list(kernel.operators),
            "lines": [_line(frame) for frame in kernel.lines],
            "is_complete": kernel.is_complete,
        }
        for kernel in kernels[: limit or None]
    ]
    return {"row_count": len(kernels), "metric": time_metric(profile), "rows": rows}


def _time_use(profile: Profile, limit: int) -> dict[str, object] | None:
    if not time_between_operators.is_sampled(profile):
        return None
    rows, count = time_between_operators.by_line(profile, limit)
    return {
        "threads": [
            {"name": row.name, "operator_ns": row.operator_ns, **_plain(row.sampled)}
            for row in time_between_operators.by_thread(profile)
        ],
        "lines": {
            "row_count": count,
            "rows": [{**_place(profile, row), **_plain(row.sampled)} for row in rows],
        },
    }


def _set_up(profile: Profile) -> dict[str, Any] | None:
    time = setup_time(profile)
    return None if time is None else {**_plain(time), "working_ns": time.working_ns}


def _ranks(profile: Profile, limit: int) -> dict[str, object] | None:
    rows = ranks.by_rank(profile)
    if not rows:
        return None
    return {
        "rows": [{name: getattr(row, name) for name in _OF_RANK} for row in rows],
        "collectives": [_plain(row) for row in collectives.by_rank(profile)],
        "late": _late(profile),
        "communication": [_plain(row) for row in communication.by_operation(profile)],
        "uneven_lines": [
            {**_place(profile, line), "by_rank": list(line.by_rank)}
            for line in ranks.uneven_lines(profile, limit)
        ],
    }


def _late(profile: Profile) -> dict[str, object] | None:
    found = late_ranks.by_lateness(profile)
    if found is None:
        return None
    return {**_plain(found), "rows": [_late_row(profile, row) for row in found.rows]}


def _late_row(profile: Profile, row: RankDelays) -> dict[str, object]:
    places = late_places(profile, row.rank) if row.caused_ns else ()
    return {
        **_plain(row),
        "places": [_late_place(profile, place) for place in places[:_MOST_PLACES]],
    }


def _late_place(profile: Profile, place: LatePlace) -> dict[str, object]:
    frame = place.frame
    return {
        "file": frame.file if frame else "",
        "line": frame.line if frame else 0,
        "function": frame.name if frame else "",
        "source": _source(profile, frame) if frame else "",
        "doing": place.doing,
        "excess_ns": place.excess_ns,
        "share": place.share,
    }


def _counter_use(profile: Profile, limit: int) -> dict[str, object] | None:
    metrics = counter_summary.counted(profile)
    if not metrics:
        return None
    rows, count = counter_summary.by_line(profile, limit)
    return {
        "totals": {metric.name: int(profile.inclusive(metric.name)[0]) for metric in metrics},
        "lines": {
            "row_count": count,
            "rows": [
                {
                    **_place(profile, row),
                    "counts": dict(row.counts),
                    "instructions_per_cycle": row.instructions_per_cycle,
                }
                for row in rows
            ],
        },
    }


def _memory(profile: Profile, limit: int) -> object:
    use = memory_summary.memory_use(profile)
    if use is None:
        return None
    return {
        "steps": use.steps,
        "step_kind": use.step_kind,
        "growth_since_step": use.growth_since_step,
        "untracked_bytes": use.untracked_bytes,
        "pools": [_plain(pool) for pool in use.pools],
        **{
            f"{prefix}lines": _memory_lines(profile, prefix, limit)
            for prefix in memory_summary.prefixes(profile)
        },
    }


def _memory_lines(profile: Profile, prefix: str, limit: int) -> dict[str, object]:
    table = memory_summary.held_at_peak(profile, prefix, limit)
    return {
        "held_at_peak": [
            {**_line(row), "peak_bytes": row.exclusive, "share": _share(row.exclusive, table.total)}
            for row in table.rows
            if row.exclusive
        ]
        if table
        else [],
        "growth": [
            {
                "file": grown.file,
                "line": grown.line,
                "function": grown.function,
                "growth_bytes": grown.size_bytes,
                "grown_steps": grown.grown_steps,
                "steps": grown.steps,
                "is_steady": grown.is_steady,
            }
            for grown in memory_summary.growth(profile, prefix, limit)
        ],
    }


def _below(profile: Profile, limit: int) -> object:
    found = library_time(profile, limit)
    if found is None:
        return None
    line = found.line
    return {
        "file": line.file if line else "",
        "line": line.line if line else 0,
        "time_ns": found.time_ns,
        "packages": [{"name": name, "time_ns": time_ns} for name, time_ns in found.packages],
        "line_count": found.line_count,
        "lines": [{**_line(row.frame), "time_ns": row.time_ns} for row in found.lines],
    }


def _line(row: Group | Frame) -> dict[str, object]:
    return {"file": row.file, "line": row.line, "function": row.name}


def _values(row: Group, total: int) -> dict[str, object]:
    return {
        "inclusive": row.inclusive,
        "exclusive": row.exclusive,
        "inclusive_share": _share(row.inclusive, total),
        "exclusive_share": _share(row.exclusive, total),
        "phases": {phase.label: value for phase, value in zip(PHASES, row.phases, strict=True)},
        "contexts": row.contexts,
    }


def _paths(
    profile: Profile, metric: str, limit: int, *, inclusive: bool
) -> list[dict[str, object]]:
    return [
        {
            "node": row.node,
            "inclusive": row.inclusive,
            "exclusive": row.exclusive,
            "share": row.share,
            "events": row.count,
            "path": [_frame(frame) for frame in row.frames],
        }
        for row in profile.hot_paths(metric, limit, inclusive=inclusive)
    ]


def _spread(spread: Spread | None) -> object:
    return None if spread is None else _plain(spread)


def _share(value: int, total: int) -> float:
    return value / total if total else 0.0


def _frame(frame: Frame) -> dict[str, object]:
    kind = frame.kind.label
    return {"kind": kind, "name": frame.name, "file": frame.file, "line": frame.line}


def _place(
    profile: Profile, row: LineTime | LineCounts | LineWork | UnevenLine
) -> dict[str, object]:
    where = {"file": row.file, "line": row.line, "function": row.function}
    return {**where, "source": _source(profile, row)}


def _source(profile: Profile, row: SourceRow) -> str:
    return line_text(row.file, row.line, profile.run.start_unix_ns or None)


def _plain(value: Any) -> Any:
    """Return dataclasses, mappings and tuples as JSON's types; NaN and infinity as None."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
