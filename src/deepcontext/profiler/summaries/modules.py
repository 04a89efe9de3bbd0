"""Which modules take the most."""

from typing import Final

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.summaries.groups import Grouping

# By module instance, largest inclusive value first.
by_module: Final = Grouping(FrameKind.MODULE, largest="inclusive")
