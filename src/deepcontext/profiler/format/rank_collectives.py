"""Sections `collectives` and `jax_collectives`: how long single collectives of a process took.

To compare with other ranks. JSON, in the profile of one process:

    version     4; 3 has no exposed time, 2 no bytes either
    groups      [name, ranks of its members, collectives that no member leaves before the last has
                come], ...: process groups, by index; name "" where unknown. Of JAX: the collectives of
                a jitted function among the same processes; the name is the function's
    are_apart   whether the groups are told apart; else all collectives are in group 0
    ended       collectives whose end was seen, on the host or on a device
    unmatched   calls and works that do not belong together for certain
    unknown     collectives whose group could not be read; they are in no row
    left_out    jitted functions, or kinds of groups, that have collectives in no row
    operations  names of operators of torch's namespace "c10d", or HLO opcodes, by index
    rows        [group, number, order, operation, duration in ns, own time in ns, bytes, exposed time
                in ns], ...; bytes of one rank's, of JAX one device's, larger side, 0 where unknown. The
                exposed time is the part of the duration in which the process waited for it, or in which
                the device computed nothing; -1 where unknown. Of sampled processes it is right as a sum
                and may be more than the duration
    places      [[kind, name, file, line], ...], ...: paths of frames, outermost first, without root
                and thread
    samples     [order, place, doing, ns], ...: where the process was in the stretch before that
                collective, the places with most time; doing is an index of `DOING`

The collectives of a group have the numbers 0, 1, 2 ..., those of the process ascending orders, as they
are called. Of many, some are in `rows` and `samples`, of every rank the same numbers. A stretch is what a
process did by itself: from the last call, or the last end, of any collective to the call. The own time of
a collective is that of all stretches since the collective of its group before. Collectives whose work runs
on a device have the duration of their kernels, and stretches of the device's time line. A merged profile has
sections `joined_collectives` and `joined_jax_collectives` instead.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION: Final = "collectives"
JAX_SECTION: Final = "jax_collectives"
SECTIONS: Final = (SECTION, JAX_SECTION)
# Of joined ranks; `model/job/collectives.py` describes them.
JOINED: Final = {f"joined_{name}": name for name in SECTIONS}
VERSION: Final = 4
COLUMNS: Final = {2: 6, 3: 7, 4: 8}  # of rows, by version
IN_COLLECTIVE: Final = "in a collective"
# As in native/core/stretch.h.
DOING: Final = (
    "computing",
    "waiting in an operator",
    "running Python",
    "waiting for a processor",
    "waiting",
    IN_COLLECTIVE,
)


def encode(content: Mapping[str, Any]) -> bytes:
    """Return the payload of the section, of one process."""
    return json.dumps({"version": VERSION, **content}, separators=(",", ":")).encode()
