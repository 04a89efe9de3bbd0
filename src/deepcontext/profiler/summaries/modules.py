"""Which modules take the most, by instance and by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.summaries.groups import Grouping

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile


@dataclass(frozen=True, slots=True)
class ModuleClass:
    """All modules of one class.

    Attributes:
        name: name of the class, ``Linear``.
        instances: number of instances that were called.
        exclusive: value of the metric, without nested modules.
    """

    name: str
    instances: int
    exclusive: int


# By module instance, largest inclusive value first.
by_module: Final = Grouping(FrameKind.MODULE, largest="inclusive")


def by_module_class(profile: Profile, metric: str = HOST_TIME_NS.name) -> tuple[ModuleClass, ...]:
    """Add up the modules of each class, largest exclusive value first."""
    found: dict[str, list[int]] = {}
    for row in by_module(profile, metric).rows:
        found.setdefault(row.name.partition(" '")[0], []).append(row.exclusive)
    rows = (ModuleClass(name, len(values), sum(values)) for name, values in found.items())
    return tuple(sorted(rows, key=lambda row: (-row.exclusive, row.name)))
