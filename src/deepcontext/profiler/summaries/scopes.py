"""Which scopes take the most: those the program opens with `deepcontext.scope`, and frameworks'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.summaries.groups import groups_by_name

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.groups import GroupTable


def by_scope(profile: Profile, metric: str = HOST_TIME_NS.name, limit: int = 0) -> GroupTable:
    """Aggregate by scope name, largest inclusive value first; `limit` 0 gives all."""
    return groups_by_name(profile, FrameKind.SCOPE, metric, limit, largest="inclusive")
