"""What a trace says about the run, and what it does not say: for the header and the trust report.

Copies only facts that are known here: files may carry names of jobs, users and machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.importing.device_events import Said
from deepcontext.profiler.importing.kineto.columns import Kind
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.importing.kineto.columns import Columns

NVIDIA: Final = "nvidia"
AMD: Final = "amd"
_KEYS: Final = {
    "cupti_version": NVIDIA,
    "cuda_runtime_version": NVIDIA,
    "cuda_driver_version": NVIDIA,
    "roctracer_version": AMD,
    "rocprofiler_version": AMD,
    "hip_runtime_version": AMD,
    "hip_driver_version": AMD,
}
_VERSIONS: Final = (*_KEYS, "schemaVersion", "nccl_version")
_OLDEST_UNIX_NS: Final = 10**18  # September 2001: smaller times count from a start of their own


def vendor_of(facts: Mapping[str, Any], columns: Columns) -> str:
    """Return the vendor of the devices, "" where the trace does not tell."""
    for key, vendor in _KEYS.items():
        if key in facts:
            return vendor
    names = " ".join(str(each.get("name", "")) for each in _devices(facts))
    if "NVIDIA" in names or "Tesla" in names:
        return NVIDIA
    if "AMD" in names or "Radeon" in names:
        return AMD
    calls = [name for kind, name in columns.names if kind == Kind.CALL]
    if any(name.startswith("hip") for name in calls):
        return AMD
    return NVIDIA if any(name.startswith("cu") for name in calls) else ""


def run_of(
    columns: Columns, facts: Mapping[str, Any], begin_ns: int, wall_ns: int, steps: int
) -> RunInfo:
    """Return what is known about the run.

    Args:
        columns: the events.
        facts: what stands beside the events.
        begin_ns: when the trace began, since its first event.
        wall_ns: elapsed time.
        steps: number of marked steps.
    """
    start = (columns.origin_ns or 0) + begin_ns
    base = facts.get("baseTimeNanoseconds", 0)
    if isinstance(base, int) and 0 <= base < 2**62 and start < _OLDEST_UNIX_NS:
        start += base
    job = facts.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    rank, ranks = _count(job.get("rank")), _count(job.get("world_size"))
    pids = [pid for pid in columns.process_names if isinstance(pid, int) and pid > 0]
    return RunInfo(
        start_unix_ns=start if start >= _OLDEST_UNIX_NS else 0,
        wall_ns=wall_ns,
        steps=steps,
        pid=pids[0] if len(pids) == 1 else 0,
        rank=rank,
        ranks=ranks,
        rank_source="torch.distributed" if ranks else "",
    )


def _devices(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = facts.get("deviceProperties")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


def said_of(columns: Columns, facts: Mapping[str, Any]) -> Said:
    """Return what is said of a trace, once its events are read."""
    vendor = vendor_of(facts, columns)
    lacks = {
        "python": "the file has no Python functions (record with with_stack=True): paths begin at operators",
        "torch": "the file has no operators (record with ProfilerActivity.CPU)",
        "memory": "the file has no allocations (record with profile_memory=True)",
    }
    job = facts.get("distributedInfo")
    if isinstance(job, dict) and _count(job.get("world_size")) > 1:
        lacks["late ranks"] = (
            "clocks of traces are those of their machines: ranks are compared by durations; ranks that came "
            "late to a collective are not looked for"
        )
    lacks["cpu sampling"] = (
        "a trace has no samples: time outside operators is not divided into running and waiting"
    )
    of_parts = {
        "python": {"lines": "at which a function begins"},
        vendor or "gpu": {key: str(facts[key]) for key in _VERSIONS if key in facts},
    }
    return Said("torch.profiler (Kineto)", vendor, columns, lacks, of_parts=of_parts)
