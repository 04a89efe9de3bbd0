"""Section `collectives`: how long single collectives of a process took, to compare with other ranks.

JSON, in the profile of one process:

    version     1
    groups      process groups that the process may have been in
    called      collectives that no rank leaves before the last has come
    ended       those of them whose end was seen
    unmatched   calls and works that do not belong together for certain
    rows        [number, duration in ns, 1 if another had not ended when it was called], ...

Collectives have the numbers 0, 1, 2 ... in the order of their calls. Of more than 1,024 some are in
`rows`, of every rank the same. In a merged profile: `version`, and `ranks`, the above by rank.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION: Final = "collectives"
VERSION: Final = 1


def encode(content: Mapping[str, Any]) -> bytes:
    """Return the payload of the section, of one process."""
    return json.dumps({"version": VERSION, **content}, separators=(",", ":")).encode()


def joined(payloads: Mapping[int, bytes]) -> bytes:
    """Return the payload of a merged profile, from those of its ranks."""
    ranks = {str(rank): json.loads(payload) for rank, payload in payloads.items()}
    return encode({"ranks": ranks})
