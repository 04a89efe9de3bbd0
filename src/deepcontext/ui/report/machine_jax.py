"""The part of the report for programs about JAX.

Its keys are documented in docs/reference/report-json.md. Unlike the text report, it lists the
members of every fusion.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from deepcontext.profiler.summaries.jax import memory as jax_memory
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Phase
    from deepcontext.profiler.model.place import Place
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.jax.operations import Operation


def jax_to_dict(profile: Profile, limit: int) -> dict[str, object] | None:
    """Return the facts about JAX as JSON's types, None for a profile without JAX.

    Args:
        profile: the profile.
        limit: rows of each list.
    """
    if jax_programs.section(profile) is None:
        return None
    accounting = jax_programs.device_accounting(profile)
    operations = jax_operations.operations(profile)
    return {
        "device_time_ns": accounting.total,
        "device_time_on_user_line_ns": accounting.on_user_line,
        "device_time_inserted_ns": accounting.inserted,
        "device_time_by_phase_ns": _phases(accounting.phases),
        "functions": [
            {
                "name": row.name,
                "launches": row.launches,
                "dispatch_ns": row.dispatch_ns,
                "device_time_ns": row.device_ns,
                "device_time_by_phase_ns": _phases(row.phases),
                "compilations": row.compilations,
                "compile_ns": row.compile_ns,
            }
            for row in jax_programs.jitted_functions(profile)[:limit]
        ],
        "operation_count": len(operations),
        "operations": [_operation(row) for row in operations[:limit]],
        "fusions_of_several_lines": [
            _operation(row) for row in jax_operations.fusions(profile, several_lines=True)[:limit]
        ],
        "recompilations": [
            {
                "function": row.function,
                "reason": row.reason,
                "changes": list(row.changes),
                "path": [_source(source) for source in row.path],
                "count": row.count,
                "spent_ns": row.spent_ns,
            }
            for row in jax_programs.recompilations(profile)[:limit]
        ],
        "transfers": [
            {
                "what": row.what,
                "source": _source(row.source),
                "count": row.count,
                "host_ns": row.host_ns,
                "size_bytes": row.bytes,
            }
            for row in jax_programs.transfers(profile)[:limit]
        ],
        "arrays": _arrays(profile, limit),
        "programs": [
            {**asdict(row), "run_bytes": row.run_bytes}
            for row in jax_memory.program_memory(profile)[:limit]
        ],
    }


def _arrays(profile: Profile, limit: int) -> dict[str, object] | None:
    arrays = jax_memory.array_memory(profile)
    if arrays is None:
        return None
    table = jax_memory.held_at_peak(profile, limit)
    return {
        **asdict(arrays),
        "held_at_peak": [
            {
                "file": row.file,
                "line": row.line,
                "function": row.name,
                "peak_bytes": row.exclusive,
            }
            for row in (table.rows if table else ())
            if row.exclusive
        ],
    }


def _phases(values: dict[Phase, int]) -> dict[str, int]:
    return {phase.label: value for phase, value in values.items()}


def _source(source: Place) -> dict[str, object] | None:
    if not source.file:
        return None
    return {"function": source.function, "file": source.file, "line": source.line}


def _operation(row: Operation) -> dict[str, object]:
    return {
        "program": row.program,
        "name": row.name,
        "opcode": row.opcode,
        "phase": row.phase,
        "source": _source(row.source),
        "source_lines": row.source_lines,
        "device_time_ns": row.device_ns,
        "executions": row.executions,
        "executions_are_estimated": row.is_estimated,
        "flops": row.flops,
        "bytes_moved": row.bytes,
        "flops_per_byte": row.intensity,
        "flops_per_second": row.flops_per_second,
        "bytes_per_second": row.bytes_per_second,
        "members": [
            {
                "primitive": member.primitive,
                "phase": member.phase,
                "source": _source(member.source),
                "flops": member.flops,
            }
            for member in row.members
        ],
    }
