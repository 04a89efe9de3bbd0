"""The section `child_ends` of a profile: how child processes ended, as far as their parent saw it.

    {"version": 1, "is_last": true, "seen_unix_ns": 17..., "running": [PID, ...],
     "ended": {"PID": [STATUS, SEEN], ...}}

    is_last        the parent closed its profile; its children in neither list had ended, too
    seen_unix_ns   when the parent looked, ns since 1970-01-01 UTC STATUS         exit status, or
    the negative number of the signal that ended the child SEEN           when the parent found that
    the child had ended, ns since 1970-01-01 UTC

Standard library only, because the profiled program writes the section.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION: Final = "child_ends"
_VERSION: Final = 1


class SeenEnd(NamedTuple):
    """How a child ended: its exit status (negative: a signal), and when its parent saw that, unix ns."""

    status: int
    seen_unix_ns: int


class ChildEnds(NamedTuple):
    """What a process saw of its children; see the table above."""

    is_last: bool
    seen_unix_ns: int
    running: frozenset[int]
    ended: Mapping[int, SeenEnd]

    def encode(self) -> bytes:
        """Return the payload of the section."""
        return json.dumps({
            "version": _VERSION,
            "is_last": self.is_last,
            "seen_unix_ns": self.seen_unix_ns,
            "running": sorted(self.running),
            "ended": {str(pid): list(end) for pid, end in self.ended.items()},
        }).encode()


def decode(payload: bytes) -> ChildEnds:
    """Read the payload of the section.

    Raises:
        ProfileDataError: when it is not what this build reads.
    """
    try:
        content = json.loads(payload)
        if content["version"] != _VERSION:
            raise ProfileDataError(
                f"cannot read section '{SECTION}': version {content['version']}, this build reads "
                f"{_VERSION}; upgrade deepcontext"
            )
        return ChildEnds(
            bool(content["is_last"]),
            int(content["seen_unix_ns"]),
            frozenset(map(int, content["running"])),
            {
                int(pid): SeenEnd(int(status), int(seen))
                for pid, (status, seen) in content["ended"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProfileDataError(
            f"cannot read section '{SECTION}': {type(error).__name__}: {error}"
        ) from error
