"""How far a program's times are those of a machine that does nothing else.

Beside other programs, all that a program computes takes longer: a run of half a second becomes one of two.
Samples tell when a thread could run and had no processor. Does not correct times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.summaries import time_between_operators

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile


def processor_share(profile: Profile) -> float:
    """Return in which share of the time that the main threads could run they had a processor, 0 to 1.

    1 where this was not recorded. Samples lie between operators, which get the same processors.
    """

    def compute() -> float:
        on_main = time_between_operators.on_main_threads(profile)
        running, ready = (
            int(exclusive_or_zeros(profile, metric.name)[on_main].sum())
            for metric in (SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS)
        )
        return running / (running + ready) if running else 1.0

    return profile.once(processor_share, compute)
