"""How often code runs in a step, and which functions must run one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.operator_names import DRAWS
from deepcontext.analyzers.shared.value_reads import asked_reads
from deepcontext.profiler.format.frame import FrameKind
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
    return max(steps, _backward_passes(profile))


def dependent_runs(profile: Profile, is_user: source_locations.Mask) -> dict[tuple[str, str], int]:
    """Return how often functions, by file and name, draw samples and read values.

    The next run of such a function may depend on the sample or the value of the run before.
    """
    draws = source_locations.operators(profile, DRAWS).mask() | asked_reads(profile).mask()
    found = source_locations.by_function(Query(profile, draws), HOST_TIME_NS.name, is_user=is_user)
    return {(each.frame.file, each.frame.name): each.count for each in found if each.frame}


def _backward_passes(profile: Profile) -> int:
    """Return the number of backward passes that began at a scalar, several a step with accumulation.

    Source: torch/autograd/__init__.py, which makes a gradient of ones for each.
    """
    made = source_locations.nodes_named(profile, FrameKind.PYTHON, {"_make_grads"})
    ones = source_locations.operators(profile, {"aten::ones_like"}).under(made).nodes()
    return int(profile.counts(CALL_DURATION_NS.name)[ones].sum())
