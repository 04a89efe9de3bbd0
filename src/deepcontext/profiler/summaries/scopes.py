"""Which scopes take the most: scopes opened with `deepcontext.scope` or by a framework."""

from __future__ import annotations

from typing import Final

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries.groups import Grouping

# By scope name, largest inclusive value first.
by_scope: Final = Grouping(FrameKind.SCOPE, largest="inclusive")
