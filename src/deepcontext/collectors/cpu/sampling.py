"""Where threads spend their time between operators, by sampling.

The sampler is native (`native/sampling/sampler.h`) and needs no GIL; this file starts the sampler
and reports what happened to the samples. Time inside operators is not sampled, because the
framework's collector measures it: the two times add up to a thread's elapsed time.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from deepcontext import _native
from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format.metric import (
    OPERATOR_READY_TIME_NS,
    SAMPLED_COLLECTIVE_WAIT_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_GIL_TIME_NS,
    SAMPLED_GIL_WAIT_TIME_NS,
    SAMPLED_IO_WAIT_TIME_NS,
    SAMPLED_LOCK_WAIT_TIME_NS,
    SAMPLED_OPERATORS,
    SAMPLED_PROCESS_WAIT_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_SLEEP_TIME_NS,
    SAMPLED_STEP,
    SAMPLED_WAIT_TIME_NS,
    SLOW_STEP_TIME_NS,
)
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.options import SessionOptions

# Functions that libraries put in front of all their functions: of NumPy's arrays, and of pybind11.
_PASSING_ON = ("dispatcher_vectorcall", "pybind11::cpp_function::dispatcher")
# Warn if more than this share of the samples was lost.
_NOTABLE_LOSS = 0.02


class CpuSampling:
    """Samples all threads of the process, running and waiting."""

    name = "cpu sampling"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = (
        SAMPLED_CPU_TIME_NS,
        SAMPLED_WAIT_TIME_NS,
        SAMPLED_GIL_TIME_NS,
        SAMPLED_GIL_WAIT_TIME_NS,
        SAMPLED_LOCK_WAIT_TIME_NS,
        SAMPLED_PROCESS_WAIT_TIME_NS,
        SAMPLED_IO_WAIT_TIME_NS,
        SAMPLED_SLEEP_TIME_NS,
        SAMPLED_COLLECTIVE_WAIT_TIME_NS,
        SAMPLED_READY_TIME_NS,
        OPERATOR_READY_TIME_NS,
        SLOW_STEP_TIME_NS,
        SAMPLED_STEP,
        SAMPLED_OPERATORS,
    )

    def __init__(self) -> None:
        self._rate_hz = 0.0

    def probe(self) -> Availability:
        """Say whether threads can be sampled here."""
        if not sys.platform.startswith("linux"):
            return Availability(available=False, reason="samples are read from Linux's /proc")
        return Availability(available=True)

    def start(self, options: SessionOptions) -> None:
        """Begin to sample.

        Raises:
            EnvironmentProblem: with the reason why this process cannot be sampled.
        """
        self._rate_hz = options.cpu_rate
        if not self._rate_hz:
            return
        availability = self.probe()
        if not availability.available:
            raise EnvironmentProblem(availability.reason)
        for beginning in _PASSING_ON:
            _native.native_add_plumbing(beginning)
        reason = _native.start_sampler(self._rate_hz)
        if reason:
            raise EnvironmentProblem(reason)

    def charged_from_ns(self) -> int:
        """Return since when the main thread's time is charged, 0 without sampling."""
        return _native.sampler_begun_ns() if self._rate_hz else 0

    def charge_no_more(self) -> int:
        """Stop sampling, and charge the time that is not charged yet; return up to when."""
        return _native.stop_sampler()

    def stop(self) -> None:
        """Stop sampling, if that has not happened."""
        _native.stop_sampler()

    def settle(self) -> None:
        """Nothing arrives late."""

    def outcome(self) -> Outcome:
        """Say how many samples were taken and lost."""
        if not self._rate_hz:
            return Outcome(Status.OFF, "switched off with a rate of 0")
        counts = _native.sampler_counts()
        limitation = _native.sampler_limitation()
        if not limitation and not _native.sampler_knows_gil():
            limitation = "waits for the GIL cannot be distinguished from other waits here"
        return Outcome(
            Status.DEGRADED if limitation else Status.RAN,
            limitation,
            {"rate_hz": self._rate_hz, "internal_cpu_time_ns": counts["internal_cpu_ns"]},
            {
                "samples_running": counts["running"],
                "samples_waiting": counts["waiting"],
                "samples_lost": counts["lost"],
                "samples_cut": counts["cut"],
                "samples_unanswered": counts["unanswered"],
                "signals_astray": counts["astray"],
                "waits_ended_by_signals": counts["waits_ended"],
                "samples_without_native_functions": counts["not_inside"],
                "threads_sampled": counts["threads"],
                "threads_not_sampled": counts["threads_refused"],
            },
            _notes(counts),
        )

    def sections(self) -> Mapping[str, bytes]:
        """Nothing beside the tree."""
        return {}


def _notes(counts: _native.SamplerCounts) -> tuple[str, ...]:
    notes = []
    missed = counts["lost"] + counts["unanswered"]
    taken = counts["running"] + counts["waiting"]
    if missed > _NOTABLE_LOSS * (taken + missed):
        notes.append(
            f"{missed} of {taken + missed} samples could not be attributed to a source line: their "
            "time is charged where the thread was sampled next, or to the thread as a whole"
        )
    if counts["astray"]:
        notes.append(
            "the program blocked or took over SIGURG when it was asked for a sample: it may have "
            f"received the signal, which nobody else sent ({counts['astray']})"
        )
    if counts["threads_refused"]:
        notes.append(
            f"more threads at once than can be sampled: {counts['threads_refused']} visits to "
            "threads were skipped"
        )
    return tuple(notes)
