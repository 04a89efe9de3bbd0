"""Which scopes take the most: scopes opened with `deepcontext.scope` or by a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.summaries.groups import groups_by_name

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile
    from deepcontext.profiler.summaries.groups import GroupTable


def by_scope(profile: Profile, metric: str = HOST_TIME_NS.name, limit: int = 0) -> GroupTable:
    """Aggregate by scope name, largest inclusive value first; `limit` 0 returns all."""
    return groups_by_name(profile, FrameKind.SCOPE, metric, limit, largest="inclusive")
