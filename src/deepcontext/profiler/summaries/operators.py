"""Which operators take the most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import summed
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.groups import Grouping

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile


# By operator name, largest exclusive value first.
by_operator: Final = Grouping(FrameKind.OPERATOR, largest="exclusive")


def operator_time(profile: Profile) -> int:
    """Return the host time of operators, ns: the total without scopes of Python code outside them."""
    inside = profile.tree.nearest(profile.is_kind(FrameKind.OPERATOR)) != NO_NODE
    return int(summed(profile, HOST_TIME_NS.name)[inside].sum())
