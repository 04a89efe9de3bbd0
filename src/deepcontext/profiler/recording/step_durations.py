"""How long the steps of a run took, without keeping each step.

Does not decide what a step is (`session.py`).
"""

from __future__ import annotations

from deepcontext.profiler.recording.capture import StepTimes


class StepDurations:
    """Count, sum, extremes and spread of step times in ns (Welford)."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.minimum = 0
        self.maximum = 0
        self._mean = 0.0
        self._m2 = 0.0

    def add(self, duration_ns: int) -> None:
        """Count one step."""
        self.minimum = duration_ns if self.count == 0 else min(self.minimum, duration_ns)
        self.maximum = max(self.maximum, duration_ns)
        self.count += 1
        self.total += duration_ns
        distance = duration_ns - self._mean
        self._mean += distance / self.count
        self._m2 += distance * (duration_ns - self._mean)

    def summary(self) -> StepTimes:
        """Return what the profile holds of the steps."""
        return StepTimes(self.count, self.total, self.minimum, self.maximum, self._m2)
