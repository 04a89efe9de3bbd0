"""Collectives of `torch.distributed`: how long each took, in which group, and what came before it.

The native observer numbers them (`native/torch/collectives.h`). NCCL and RCCL say which collective they
run, in which group; the durations are those of their kernels, where a GPU collector runs. Of gloo, groups
are told apart only from the moment when the program makes a second group, because that needs the inputs of
all operators.
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
        self._groups = ProcessGroups(
            _native.torch_group_address, self._tell_apart, self._read_calls
        )
        self._are_apart = False
        self._sizes: Mapping[str, Sequence[tuple[str, int]]] = {}

    def start(self) -> None:
        """Watch the process groups."""
        self._groups.start()

    def begin(self) -> None:
        """Tell groups that exist already apart; the observer has just begun."""
        if self._groups.count() > 0:
            self._read_calls()
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
        on_device = found.pop("ended_on_device")
        if not found["ended"] + on_device:
            return {}
        found["are_apart"] = self._are_apart or self._groups.count() <= 1
        if on_device and not _is_known_on_host(found):
            found |= _without_host(found)
        found["ended"] += on_device
        groups = self._group_names(found["groups"])
        found["rows"] = collective_sizes.with_bytes(
            found["rows"],
            [(group.name, called) for group, called in groups],
            found["operations"],
            self._sizes,
        )
        found["groups"] = [[group.name, list(group.members), called] for group, called in groups]
        return {rank_collectives.SECTION: rank_collectives.encode(_without_unused(found))}

    def _group_names(self, groups: Sequence[tuple[int, str, int]]) -> list[tuple[Group, int]]:
        """Return the groups of this process, and how many collectives each had."""
        by_address = self._groups.by_address()
        default = self._groups.default() or _NO_GROUP
        by_name = {group.name: group for group in (*by_address.values(), default)}
        on_host = {
            by_address.get(address, _NO_GROUP if address else default).name
            for address, name, called in groups
            if called and not name
        }
        found = []
        for index, (address, name, called) in enumerate(groups):
            group = by_address.get(address, _NO_GROUP if index else default)
            if name:
                group = by_name.get(name, _NO_GROUP)
            if name in on_host:  # the same ranks exchange tensors of both kinds
                group = Group(f"{name} (device)", group.members)
            found.append((group, called))
        return found

    def _read_calls(self) -> None:
        # Makes an object of torch's to learn its layout: not in programs without a process group. Where it
        # cannot, devices' collectives have no numbers.
        _native.torch_load_group_calls()

    def _tell_apart(self, group: Any) -> None:
        # Others have no works that are seen, so that inputs would be asked for in vain.
        if not self._are_apart and group is not None and self._groups.backends(group) == {"gloo"}:
            address = _native.torch_group_address(group)
            self._are_apart = bool(address) and _native.torch_tell_groups_apart(address)


def _is_known_on_host(found: Mapping[str, Any]) -> bool:
    """Return whether collectives whose work ran on the host were matched and are of known groups."""
    return bool(found["are_apart"]) and not found["unmatched"] and not found["unknown"]


def _without_host(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what changes if only collectives of devices are kept."""
    is_on_device = [bool(name) for _, name, _ in found["groups"]]
    return {
        "are_apart": True,
        "unmatched": 0,
        "unknown": 0,
        "left_out": 1,
        "groups": [
            (address, name, called if name else 0) for address, name, called in found["groups"]
        ],
        "rows": [row for row in found["rows"] if is_on_device[row[0]]],
    }


def _without_unused(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section without groups that had no collective."""
    used = [index for index, (_, _, called) in enumerate(found["groups"]) if called]
    place = {index: at for at, index in enumerate(used)}
    return {
        **found,
        "groups": [found["groups"][index] for index in used],
        "rows": [(place[row[0]], *row[1:]) for row in found["rows"]],
    }
