"""The rank that `torch.distributed` gives this process.

The process group may be gone when a profile is written, so its rank is read where torch sets the
default group: in the setter of one property of a private class. Where a torch has no such property,
only a group that exists at the time of writing is seen. Changes nothing else, and creates no group.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from deepcontext.profiler.recording.rank import Rank

_SOURCE: Final = "torch.distributed"
_MODULE: Final = "torch.distributed.distributed_c10d"
_PROPERTY: Final = "default_pg"
_FEWEST: Final = 2


class DefaultGroup:
    """Remembers the rank of this process in the default group, from `start` to `stop`."""

    def __init__(self) -> None:
        self._rank: Rank | None = None
        self._class: Any = None
        self._original: Any = None
        self._watched: Any = None
        self._groups = 0

    def start(self) -> None:
        """Watch torch's default group from now on."""
        self._look()
        kind = getattr(sys.modules.get(_MODULE), "_World", None)
        original = None if kind is None else vars(kind).get(_PROPERTY)
        if not isinstance(original, property) or original.fset is None:
            return
        setter = original.fset

        def set_group(world: Any, group: Any) -> None:
            self._count(world)  # before the groups are forgotten
            setter(world, group)
            self._note(group)

        self._watched = property(original.fget, set_group, original.fdel, original.__doc__)
        self._class, self._original = kind, original
        setattr(kind, _PROPERTY, self._watched)

    def stop(self) -> None:
        """Undo `start`; the rank stays known."""
        self._look()
        if self._class is not None and vars(self._class).get(_PROPERTY) is self._watched:
            setattr(self._class, _PROPERTY, self._original)
        self._class = None

    def rank(self) -> Rank | None:
        """Return the rank in the newest group of several processes, None if there was none."""
        self._look()
        return self._rank

    def groups(self) -> int:
        """Return how many process groups the job has made at least, whether this process is in or not."""
        self._look()
        return self._groups

    def _count(self, world: Any) -> None:
        try:
            self._groups = max(self._groups, len(world.pg_map), int(world.group_count))
        except Exception:  # noqa: BLE001  no world, or one that counts otherwise
            return

    def _look(self) -> None:
        world = getattr(sys.modules.get(_MODULE), "_world", None)
        self._count(world)
        self._note(getattr(world, _PROPERTY, None))

    def _note(self, group: Any) -> None:
        try:
            rank = Rank(int(group.rank()), int(group.size()), _SOURCE)
        except Exception:  # noqa: BLE001  no group, or a mark that stands for none
            return
        if rank.of >= _FEWEST and rank.number >= 0:
            self._rank = rank
