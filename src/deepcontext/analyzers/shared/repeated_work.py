"""How often code runs in a step, and which functions must run one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.backward_passes import passes_from_scalars
from deepcontext.analyzers.shared.value_reads import asked_reads
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile


def steps_or_passes(profile: Profile) -> int:
    """Return the number of training steps, or of their backward passes if a step has several.

    Returns:
        0 for a profile without steps (inference), or without the durations of calls.
    """
    steps = step_count(profile)
    if not steps or CALL_DURATION_NS.name not in profile.metrics:
        return 0
    return max(steps, passes_from_scalars(profile))


def dependent_runs(profile: Profile) -> dict[tuple[str, str], int]:
    """Return how often functions, by file and name, draw samples and read values.

    The next run of such a function may depend on the sample or the value of the run before.
    """
    draws = (
        source_locations.operators(profile, catalogue.operators("draws")).mask()
        | asked_reads(profile).mask()
    )
    found = source_locations.by_function(Query(profile, draws), HOST_TIME_NS.name)
    return {(each.frame.file, each.frame.name): each.count for each in found if each.frame}
