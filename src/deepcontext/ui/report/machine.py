"""The report for programs: one JSON-able object.

Its keys are documented in docs/reference/report-json.md. A key keeps its name and meaning within
one `version`; new keys may be added. Times are integers of ns, shares are 0 to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.operators import operator_time
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.profiler.summaries.setup_time import setup_time
from deepcontext.profiler.summaries.steps import step_times
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.ui.sections import cpu, gpu, groups, jax, memory, ranks, work
from deepcontext.ui.sections.account import account_to_dict, basis_to_dict
from deepcontext.ui.sections.steps import kept_steps_to_dict
from deepcontext.ui.sections.table import picked, plain
from deepcontext.ui.sections.view import View

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile

FORMAT: Final = "deepcontext report"
VERSION: Final = 2
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
    view = View(profile, metric, limit)
    phases = by_phase(profile, metric)
    descriptor = profile.metrics[metric].descriptor
    total = sum(row.value for row in phases)
    return {
        "format": FORMAT,
        "version": VERSION,
        "metric": picked(descriptor, "name", "unit", "description"),
        "run": plain(run.run),
        "basis": basis_to_dict(profile),
        "account": account_to_dict(view),
        "total": total,
        "operator_time_ns": operator_time(profile),
        "operator_calls": sum(row.operator_calls for row in phases),
        "set_up": _set_up(run),
        "steps": plain(step_times(run)),
        "kept_steps": kept_steps_to_dict(run, limit),
        "phases": [
            {
                "phase": row.phase.label,
                "value": row.value,
                "share": row.value / total if total else 0.0,
                "operator_calls": row.operator_calls,
            }
            for row in phases
        ],
        "lines": groups.table_to_dict(view, "line"),
        "below": cpu.below(view),
        **{
            table.plural: groups.table_to_dict(view, name)
            for name, table in TABLES.items()
            if name not in _WITH_SECTIONS
        },
        "jax": jax.jax_to_dict(view),
        "gpu": _gpu(view),
        "compiled_kernels": gpu.compiled_to_dict(view),
        "arithmetic": work.arithmetic_to_dict(view),
        "efficiency": work.efficiency_to_dict(view),
        "nccl": gpu.nccl_rows(view),
        "ranks": ranks.ranks_to_dict(view),
        "time_use": cpu.time_use(view),
        "counter_use": cpu.counter_use(view),
        "paths": {
            "inclusive": _paths(profile, metric, limit, inclusive=True),
            "exclusive": _paths(profile, metric, limit, inclusive=False),
        },
        "memory": memory.memory_to_dict(view.run),
        "trust": {**plain(profile.trust), "warnings": list(profile.trust.warnings)},
    }


def _gpu(view: View) -> dict[str, object] | None:
    use, kernels = gpu_use(view.profile, 1), groups.kernels(view)
    if use is None or kernels is None:
        return None
    return {"time_ns": use.time_ns, "launches": use.launches, "kernels": kernels.to_json()}


def _set_up(profile: Profile) -> dict[str, Any] | None:
    time = setup_time(profile)
    return None if time is None else {**plain(time), "working_ns": time.working_ns}


def _paths(
    profile: Profile, metric: str, limit: int, *, inclusive: bool
) -> list[dict[str, object]]:
    return [
        {
            **picked(row, "node", "inclusive", "exclusive", "share", events="count"),
            "path": [_frame(frame) for frame in row.frames],
        }
        for row in profile.hot_paths(metric, limit, inclusive=inclusive)
    ]


def _frame(frame: Frame) -> dict[str, object]:
    kind = frame.kind.label
    return {"kind": kind, "name": frame.name, "file": frame.file, "line": frame.line}
