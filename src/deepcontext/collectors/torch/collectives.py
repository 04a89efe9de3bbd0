"""Collectives of `torch.distributed`: how long each took, in which group, and what came before it.

The native observer numbers them (`native/torch/collectives.h`). It tells groups apart only from the
moment when the program makes a second group, and on gloo only, because that needs the inputs of all
operators.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.collectors.torch import collective_sizes
from deepcontext.collectors.torch.process_group import Group, ProcessGroups
from deepcontext.profiler.format import rank_collectives

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.recording.rank import Rank

_MODULE: Final = "torch.distributed.distributed_c10d"
_NO_GROUP: Final = Group("", ())


class Collectives:
    """Reads what the observer saw of collectives."""

    def __init__(self) -> None:
        self._groups = ProcessGroups(_native.torch_group_address, self._tell_apart)
        self._are_apart = False
        self._sizes: Mapping[str, Sequence[tuple[str, int]]] = {}

    def start(self) -> None:
        """Watch the process groups."""
        self._groups.start()

    def begin(self) -> None:
        """Tell groups that exist already apart; the observer has just begun."""
        if self._groups.count() > 1:
            world = getattr(sys.modules.get(_MODULE), "_world", None)
            self._tell_apart(getattr(world, "default_pg", None))

    def stop(self) -> None:
        """Watch no longer, and ask torch for the sizes."""
        self._groups.stop()
        if _native.torch_collectives()["ended"]:
            self._sizes = collective_sizes.recorded()

    def rank(self) -> Rank | None:
        """Return the rank of this process in `torch.distributed`."""
        return self._groups.rank()

    def sections(self) -> Mapping[str, bytes]:
        """Return the times of single collectives, where the program had any that ended."""
        found: dict[str, Any] = {**_native.torch_collectives()}
        if not found["ended"]:
            return {}
        known = {0: self._groups.default() or _NO_GROUP, **self._groups.by_address()}
        groups = [(known.get(address, _NO_GROUP), called) for address, called in found["groups"]]
        found["groups"] = [[group.name, list(group.members), called] for group, called in groups]
        names = [(group.name, called) for group, called in groups]
        found["rows"] = collective_sizes.with_bytes(
            found["rows"], names, found["operations"], self._sizes
        )
        found["are_apart"] = self._are_apart or self._groups.count() <= 1
        return {rank_collectives.SECTION: rank_collectives.encode(found)}

    def _tell_apart(self, group: Any) -> None:
        # Others have no works that are seen, so that inputs would be asked for in vain.
        if not self._are_apart and group is not None and self._groups.backends(group) == {"gloo"}:
            address = _native.torch_group_address(group)
            self._are_apart = bool(address) and _native.torch_tell_groups_apart(address)
