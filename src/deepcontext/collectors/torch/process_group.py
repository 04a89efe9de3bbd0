"""The process groups of `torch.distributed`: the rank of this process, and who is in which group.

Groups may not exist any more when a profile is written. They are therefore recorded when torch sets
the default group and when it numbers a new group: in the setters of two properties of a private
class. If a torch has no such properties, only groups that exist at the time of writing are seen.
Changes nothing else, and creates no group.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.profiler.recording.rank import Rank

if TYPE_CHECKING:
    from collections.abc import Callable

_SOURCE: Final = "torch.distributed"
_MODULE: Final = "torch.distributed.distributed_c10d"
_DEFAULT: Final = "default_pg"
_COUNT: Final = "group_count"
_SECOND: Final = 2


@dataclass(frozen=True, slots=True)
class Group:
    """A process group of which this process is a member.

    Attributes:
        name: torch's, the same on all members.
        members: ranks of the job, ascending.
    """

    name: str
    members: tuple[int, ...]


class ProcessGroups:
    """Remembers the process groups of this process, from `start` to `stop`."""

    def __init__(
        self,
        address_of: Callable[[Any], int],
        on_second: Callable[[Any], None] | None = None,
        on_default: Callable[[], None] | None = None,
    ) -> None:
        """Look at nothing yet.

        Args:
            address_of: address of a group's C++ object.
            on_default: called when the program has set a default group.
            on_second: called with the default group when the program is about to make a group
                besides.
        """
        self._address_of = address_of
        self._on_second = on_second
        self._on_default = on_default
        self._rank: Rank | None = None
        self._undo: list[tuple[Any, str, property, property]] = []
        self._count = 0
        self._default: Group | None = None
        self._known: dict[int, Group] = {}

    def start(self) -> None:
        """Watch torch's groups from now on."""
        self._look()
        self._watch(_DEFAULT, before=self._note_forgotten, after=self._note_default)
        self._watch(_COUNT, after=self._note_count)

    def stop(self) -> None:
        """Undo `start`; what was seen stays known."""
        self._look()
        for kind, name, watched, original in self._undo:
            if vars(kind).get(name) is watched:
                setattr(kind, name, original)
        self._undo.clear()

    def rank(self) -> Rank | None:
        """Return the rank in the newest group of several processes, None if there was none."""
        self._look()
        return self._rank

    def count(self) -> int:
        """Return how many process groups the job has made at least, whether this process is in or not."""
        self._look()
        return self._count

    def default(self) -> Group | None:
        """Return the newest default group, which all processes of the job are in."""
        self._look()
        return self._default

    def by_address(self) -> dict[int, Group]:
        """Return the groups that were seen, by the address of their C++ object."""
        self._look()
        return dict(self._known)

    def backends(self, group: Any) -> frozenset[str]:
        """Return the libraries that exchange for a group: "gloo", "nccl"; empty where unknown."""
        world: Any = getattr(sys.modules.get(_MODULE), "_world", None)
        try:
            text = str(world.pg_backend_config[group])
        except Exception:  # noqa: BLE001  no world, or one without this table
            return frozenset()
        return frozenset(part.rpartition(":")[2] for part in text.split(","))

    def _watch(
        self,
        name: str,
        *,
        before: Callable[..., None] | None = None,
        after: Callable[[None, None, Any, Any], None],
    ) -> None:
        kind = getattr(sys.modules.get(_MODULE), "_World", None)
        original = None if kind is None else vars(kind).get(name)
        if not isinstance(original, property) or original.fset is None:
            return
        setter = _native.watched_call(original.fset, before, after)
        watched = property(original.fget, setter, original.fdel, original.__doc__)
        setattr(kind, name, watched)
        self._undo.append((kind, name, watched, original))

    def _look(self) -> None:
        world = getattr(sys.modules.get(_MODULE), "_world", None)
        self._note_groups(world)
        self._note_rank(world, getattr(world, _DEFAULT, None))

    def _note_groups(self, world: Any) -> None:
        try:
            self._count = max(self._count, len(world.pg_map), int(world.group_count))
            for group in list(world.pg_map):
                members = tuple(sorted(map(int, world.pg_group_ranks[group])))
                found = Group(str(world.pg_names[group]), members)
                self._known[self._address_of(group)] = found
                if group is world.default_pg:
                    self._default = found
        except Exception:  # noqa: BLE001  no world, or one that counts otherwise
            return

    def _note_forgotten(self, world: Any, _value: object) -> None:
        self._note_groups(world)

    def _note_default(self, _token: None, _result: None, world: Any, group: Any) -> None:
        self._note_rank(world, group)
        if group is not None and self._on_default is not None:
            self._on_default()

    def _note_rank(self, world: Any, group: Any) -> None:
        del world
        try:
            rank = Rank(int(group.rank()), int(group.size()), _SOURCE)
        except Exception:  # noqa: BLE001  no group, or a mark that stands for none
            return
        if rank.of >= _SECOND and rank.number >= 0:
            self._rank = rank

    def _note_count(self, _token: None, _result: None, world: Any, count: Any) -> None:
        try:
            group, is_first_other = world.default_pg, count >= _SECOND and len(world.pg_map) == 1
        except Exception:  # noqa: BLE001  a world that counts otherwise
            return
        if is_first_other and group is not None and self._on_second is not None:
            self._on_second(group)
