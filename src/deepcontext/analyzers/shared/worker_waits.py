"""What a change of a DataLoader can save of the time that a loop waits for its workers.

A loop waits for workers also if they are as fast as they can be: because its own work is the smaller half,
or because other programs use the processors. Compares what the workers and the loop do with the processors
that they can get. Does not search for the lines (`loading_lines.py`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.loading_lines import cheaper, places_of
from deepcontext.analyzers.weight import LEAST_WORK_NS
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.summaries.loader_workers import iterators_with_workers

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.loader_workers import LoaderTime

# With workers the wait should vanish: the share from which a loop that waits is reported.
LEAST_SHARE_WITH_WORKERS: Final = 0.15
# Of the time in which batches are made: the loop is known to wait, so that the costliest function is worth
# naming. Fewer than ten samples at the usual rate say little about a share.
_LEAST_SHARE_OF_LINE: Final = 0.15
_LEAST_NS: Final = 100_000_000
# Of a function's time in workers, from which on it consists of operators and of libraries' own code; and
# its time as a multiple of that of copying the samples into batches (drawing one random number for each
# element and adding it took nine times as long).
_OPERATORS: Final = 0.5
_MOST_PASSES: Final = 15
# Workers that make all batches in less than this part of the wait do not hold up the loop.
_IDLE: Final = 0.25
# Of the time in which batches are made: workers that sleep so long leave the processors to others.
_ASLEEP: Final = 0.5


@dataclass(frozen=True, slots=True)
class WorkerWait:
    """A loop and its workers, without what other programs took; times in ns.

    Attributes:
        wait_ns: the loop's wait, without the start of the workers.
        loop_ns: the loop's own work, with taking the batches over.
        taking_ns: the part of `loop_ns` in which the loop takes batches over.
        making_ns: time in which batches are made, the sum over the workers, if they have processors.
        batch_ns: the same for one batch.
        epochs: iterators that were made: each has to wait for its first batch.
        at_once: workers that run at the same time.
        others_ns: the part of the wait in which the loop or a worker could run and had no processor.
        processors: how many the program gets while others run.
        is_asleep: whether the workers use no processor for most of the time.
        host_ns: the loop's work and wait together, without `others_ns`.
    """

    wait_ns: int
    loop_ns: int
    taking_ns: int
    making_ns: int
    batch_ns: int
    epochs: int
    at_once: int
    others_ns: int
    processors: float
    is_asleep: bool
    host_ns: int

    @property
    def is_idle(self) -> bool:
        """Whether the workers make all batches in a small part of the loop's wait."""
        return self.making_ns < _IDLE * self.wait_ns

    def saved_without_workers(self) -> int:
        """Return what the loop saves by making the batches itself."""
        # What the loop computes to take batches over is no wait for a processor.
        handing_ns = max(self.wait_ns - self.others_ns, self.taking_ns)
        return max(handing_ns - self.making_ns, 0)

    def saved_by_line(self, share: float) -> int:
        """Return what the loop saves if a line with this share of `making_ns` costs nothing."""
        return min(int(share * self.making_ns) // self.at_once, self.wait_ns)

    def saved_by_more_workers(self) -> int:
        """Return what the loop saves with as many workers as the processors can run.

        Workers that sleep use no processor, so that any number of them can run.
        """
        # Until the first batch of an epoch is made, the loop has nothing to do.
        first = self.epochs * self.batch_ns
        if self.is_asleep:
            least = float(self.loop_ns)
        else:
            least = max(self.loop_ns, (self.loop_ns + self.making_ns) / self.processors)
        now = self.making_ns / self.at_once
        return max(min(int(now - least) - first, self.wait_ns), 0)


def wait_of(profile: Profile, times: LoaderTime, wait_ns: int) -> WorkerWait:
    """Return what the profiles of a loop and of its workers tell about the loop's wait."""
    whole = total(profile, HOST_TIME_NS.name)
    making = times.making_ns - times.making_ready_ns
    others = min(times.loop_ready_ns + times.ready_ns // times.at_once, wait_ns)
    running = times.running_ns + times.loop_running_ns + sum(ns for _, ns in times.in_operators)
    lacking = times.ready_ns + times.loop_ready_ns
    part = running / (running + lacking) if running else 1.0
    return WorkerWait(
        wait_ns=wait_ns,
        loop_ns=max(whole - times.wait_ns, 0) + times.loop_running_ns,
        taking_ns=min(times.loop_running_ns, wait_ns),
        making_ns=making,
        batch_ns=making // times.batch_count,
        epochs=iterators_with_workers(profile),
        at_once=times.at_once,
        others_ns=others,
        processors=max(profile.run.cpu_count * part, 1.0),
        is_asleep=times.waiting_ns >= _ASLEEP * times.making_ns,
        host_ns=whole - others,
    )


def _judged(profile: Profile, finding: Finding, wait: WorkerWait, saved_ns: int) -> Finding:
    """Return a finding with what its advice saves; it is no warning if this is little."""
    share = saved_ns / max(wait.host_ns, LEAST_WORK_NS)
    most = Severity.of_share(share) if share >= LEAST_SHARE_WITH_WORKERS else Severity.INFO
    before = finding.gain
    gain = source_locations.bound(
        profile,
        HOST_TIME_NS.name,
        saved_ns,
        "the loop and its workers get the processors they need",
    )
    if before and before.run_share is not None and before.upper_bound:
        part = gain.upper_bound / before.upper_bound
        gain = dataclasses.replace(
            gain,
            run_share=before.run_share * part,
            low=None if before.low is None else int(before.low * part),
            high=None if before.high is None else int(before.high * part),
        )
    return dataclasses.replace(
        finding,
        severity=min(finding.severity, most, key=lambda each: each.rank),
        gain=gain,
        evidence={
            **finding.evidence,
            "making_ns": wait.making_ns,
            "others_ns": wait.others_ns,
            "saved_ns": saved_ns,
        },
    )


def with_workers(profile: Profile, finding: Finding, times: LoaderTime) -> Finding:
    """Return a finding about a waiting loop with the line at which its workers spend most time."""
    # A finding about more workers than cores has no time of waiting, and a line of the loop's own process
    # (a sampler) is the reason already.
    is_wait = finding.evidence.get("worker_count") and "wait_ns" in finding.evidence
    is_wait = is_wait and "line_ns" not in finding.evidence
    if not is_wait or not times.lines:
        return finding
    wait = wait_of(profile, times, int(finding.evidence["wait_ns"]))
    if wait.is_idle:
        finding = dataclasses.replace(finding, advice=_IDLE_ADVICE)
        return _judged(profile, finding, wait, wait.saved_without_workers())
    of_function: dict[tuple[str, str], Counter[Frame]] = {}
    for frame, value in times.lines:
        of_function.setdefault((frame.file, frame.name), Counter())[frame] = value
    lines = max(of_function.values(), key=Counter.total)
    value = lines.total()
    share = value / times.making_ns
    is_known = share >= _LEAST_SHARE_OF_LINE and value >= _LEAST_NS
    # Operators work on whole tensors already; Python and calls for each sample can be avoided.
    is_whole = _works_on_whole_arrays(times, lines)
    if is_known and not wait.is_asleep and not is_whole:
        advice, saved = cheaper(places_of(profile, lines)), wait.saved_by_line(share)
    else:
        saved = wait.saved_by_more_workers()
        advice = _MORE_WORKERS if wait.is_asleep else _MORE_PROCESSORS if saved else ""
    if is_known:
        verb = "wait" if wait.is_asleep else "spend"
        finding = dataclasses.replace(
            finding,
            title=f"{finding.title}; its workers {verb} {share:.0%} of their time at "
            f"{places_of(profile, lines)}",
            evidence={**finding.evidence, "line_ns": value, "line_share": share},
        )
    if advice:
        finding = dataclasses.replace(finding, advice=f"{advice}; or {finding.advice}")
    return _judged(profile, finding, wait, saved)


def _works_on_whole_arrays(times: LoaderTime, lines: Counter[Frame]) -> bool:
    """Return whether the lines of a function mostly compute on whole arrays, which leaves little to save.

    These are operators, and libraries that need no lock of Python's, if their time is that of a few passes
    over the batch. A library that takes longer does more than the batch shows, for example on a larger
    picture.
    """
    value = lines.total()
    in_operators, in_libraries = (
        sum(time for frame, time in rows if frame in lines)
        for rows in (times.in_operators, times.in_libraries)
    )
    if value > _MOST_PASSES * times.copying_ns:
        in_libraries = 0
    return in_operators + in_libraries >= _OPERATORS * value


_MORE_WORKERS: Final = (
    "start more workers, also more than cores: they wait for a disk, a network or a lock, and use no "
    "processor meanwhile"
)
_MORE_PROCESSORS: Final = (
    "start more workers: they make batches all the time, and processors are idle meanwhile"
)
_IDLE_ADVICE: Final = (
    "load without workers (num_workers=0): they make all batches in a fraction of the time in which the "
    "loop waits, which goes into starting the workers and handing the batches over; if workers are needed "
    "in longer epochs, keep them alive with persistent_workers=True"
)
