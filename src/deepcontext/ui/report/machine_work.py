"""The part of the report for programs about what operators compute and move; see `machine.py`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from deepcontext.profiler.summaries.arithmetic import arithmetic
from deepcontext.profiler.summaries.efficiency import efficiency

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.operator_work import LineWork, Work

    Place = Callable[[Profile, LineWork], dict[str, object]]


def arithmetic_to_dict(profile: Profile, limit: int, place: Place) -> object:
    """Return what operators compute; `place` describes the line of a row."""
    found = arithmetic(profile, limit)
    if found is None:
        return None
    return {
        **_work(found.total),
        "steps": found.steps,
        "mfu": found.mfu,
        "is_on_gpu": found.is_on_gpu,
        "fastest_flops_per_second": found.fastest_flops_per_second,
        "unknown_calls": dict(found.unknown),
        "lines": {
            "row_count": found.line_count,
            "rows": [{**place(profile, row), **_work(row.work)} for row in found.lines],
        },
        "shapes": {
            "row_count": found.operator_count,
            "rows": [{"name": row.name, **_work(row.work)} for row in found.operators],
        },
    }


def efficiency_to_dict(profile: Profile, limit: int, place: Place) -> object:
    """Return how far operators are from the peaks; `place` describes the line of a row."""
    found = efficiency(profile, limit)
    if found is None:
        return None
    return {
        **_work(found.total),
        "is_on_gpu": found.is_on_gpu,
        "roof": found.roof
        and {
            "device": found.roof.peaks.device,
            "threads": found.roof.peaks.threads,
            "origin": found.roof.origin,
            "flops_per_second": dict(found.roof.peaks.flops_per_second),
            "bytes_per_second": found.roof.peaks.bytes_per_second,
        },
        "unknown_share": found.unknown_share,
        "unknown": [asdict(each) for each in found.unknown],
        "lines": {
            "row_count": found.line_count,
            "rows": [{**place(profile, row), **_work(row.work)} for row in found.lines],
        },
        "shapes": {
            "row_count": found.operator_count,
            "rows": [{"name": row.name, **_work(row.work)} for row in found.operators],
        },
    }


def _work(work: Work) -> dict[str, object]:
    return {
        "flops": work.flops,
        "time_ns": work.time_ns,
        "calls": work.calls,
        "flops_per_second": work.flops_per_second,
        "bytes": work.bytes,
        "bytes_per_second": work.bytes_per_second,
        "flops_per_byte": work.intensity,
        "of_peak": work.of_peak,
    }
