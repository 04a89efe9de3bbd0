"""What a trace says about the run, and what it does not say: for the header and the trust report.

Copies only facts that are known here: files may carry names of jobs, users and machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.status import Status
from deepcontext.profiler.importing.kineto.columns import Kind
from deepcontext.profiler.importing.reader import Reading
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import CollectorReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.importing.kineto.backward import Links
    from deepcontext.profiler.importing.kineto.columns import Columns
    from deepcontext.profiler.importing.kineto.device import Work
    from deepcontext.profiler.importing.kineto.nesting import Events

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
_LATE_NS: Final = 1_000_000
_TOLERATED_SHARE: Final = 0.001


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


@dataclass(slots=True)
class Said:
    """Facts of a trace, taken before its columns are emptied.

    Attributes:
        columns: the events.
        facts: what stands beside them.
        kinds: number of events of each kind.
        frees: number of memory events.
    """

    columns: Columns
    facts: Mapping[str, Any]
    memory_events: int

    @classmethod
    def of(cls, columns: Columns, facts: Mapping[str, Any]) -> Said:
        """Return the facts."""
        return cls(columns, facts, len(columns.memory.at))

    def reading(
        self, events: Events, links: Links, work: Work, *, steps_kept: int, steps_too_large: int
    ) -> Reading:
        """Return what was in the file."""
        counts = {
            "events_read": self.columns.counts["read"],
            "operators": int((events.kind == Kind.OPERATOR).sum()),
            "device_records": len(work),
            "launches_matched": work.counts.matched + work.counts.by_operator,
            "launches_unmatched": work.counts.unmatched,
            "backward_links_found": links.counts.linked,
            "backward_links_missed": links.counts.unlinked,
            "events_unknown": self.columns.counts["unknown"],
            "events_without_times": self.columns.counts["without_times"],
        }
        details = {}
        if self.columns.unknown:
            details["unknown"] = ", ".join(
                f"{what} ({count:,})" for what, count in self.columns.unknown.items()
            )
        if self.columns.overhead_ns:
            details["profiler_overhead_ns"] = str(self.columns.overhead_ns)
        if steps_too_large:
            details["steps_too_large_for_the_time_line"] = str(steps_too_large)
        details["steps_kept"] = str(steps_kept)
        return Reading(
            "torch.profiler (Kineto)",
            counts,
            (
                self._python(events),
                self._operators(events, links),
                self._memory(),
                *self._devices(work),
                *self._ranks(),
                CollectorReport(
                    "cpu sampling",
                    Status.OFF,
                    "a trace has no samples: time outside operators is not divided into running and waiting",
                ),
            ),
            tuple(self._notes(events, work)),
            details,
        )

    def _python(self, events: Events) -> CollectorReport:
        count = int((events.kind == Kind.PYTHON).sum())
        if not count:
            return CollectorReport(
                "python",
                Status.OFF,
                "the file has no Python functions (record with with_stack=True): paths begin at operators",
            )
        details = {"functions": f"{count:,}", "lines": "at which a function begins"}
        return CollectorReport("python", Status.RAN, details=details)

    def _operators(self, events: Events, links: Links) -> CollectorReport:
        count = int((events.kind == Kind.OPERATOR).sum())
        if not count:
            return CollectorReport(
                "torch", Status.OFF, "the file has no operators (record with ProfilerActivity.CPU)"
            )
        details = {"operators": f"{count:,}"}
        if links.counts.linked + links.counts.unlinked:
            details["backward_links_found"] = f"{links.counts.linked:,}"
            details["backward_links_missed"] = f"{links.counts.unlinked:,}"
        return CollectorReport("torch", Status.RAN, details=details)

    def _memory(self) -> CollectorReport:
        if not self.memory_events:
            return CollectorReport(
                "memory",
                Status.OFF,
                "the file has no allocations (record with profile_memory=True)",
            )
        return CollectorReport("memory", Status.RAN, details={"events": f"{self.memory_events:,}"})

    def _devices(self, work: Work) -> list[CollectorReport]:
        vendor = vendor_of(self.facts, self.columns)
        if not len(work):
            return []
        counts = work.counts
        details = {
            "records": f"{len(work):,}",
            "matched": f"{counts.matched + counts.by_operator:,}",
            "unmatched": f"{counts.unmatched:,}",
        }
        if counts.graph:
            details["graph_launched"] = f"{counts.graph:,}"
        versions = {key: str(self.facts[key]) for key in _VERSIONS if key in self.facts}
        return [CollectorReport(vendor or "gpu", Status.RAN, details=details | versions)]

    def _ranks(self) -> list[CollectorReport]:
        job = self.facts.get("distributedInfo")
        if not isinstance(job, dict) or _count(job.get("world_size")) <= 1:
            return []
        reason = (
            "clocks of traces are those of their machines: ranks are compared by durations; ranks that came "
            "late to a collective are not looked for"
        )
        return [CollectorReport("late ranks", Status.OFF, reason)]

    def _notes(self, events: Events, work: Work) -> list[str]:
        notes = []
        if work.counts.unmatched > _TOLERATED_SHARE * len(work):
            early = work.early
            when = f" ({early:,} were launched before the trace began)" if early else ""
            notes.append(
                f"{work.counts.unmatched:,} of {len(work):,} kernels, copies and memsets have no launch in "
                f"the file{when}: they are shown as 'GPU work of unknown origin'"
            )
        if len(work) and len(events) and work.end.max() > events.end.max() + _LATE_NS:
            late = int(work.end.max() - events.end.max())
            notes.append(
                f"the devices worked for {late / 1e6:,.1f} ms after the file's last event of the host: the "
                "elapsed time is the host's"
            )
        if self.columns.counts["without_times"]:
            notes.append(
                f"{self.columns.counts['without_times']:,} events have no usable times and are left out"
            )
        return notes
