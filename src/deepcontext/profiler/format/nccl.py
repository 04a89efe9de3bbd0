"""Section `nccl`: what NCCL or RCCL said of the collectives of a process, summed.

JSON:

    version         1
    communicators   [{id, ranks, rank, nodes}, ...]: id is NCCL's, as hexadecimal digits, the same on all
                    members
    calls           [{communicator, function, algorithm, protocol, calls, bytes, timed, timed_bytes,
                    kernel_ns, shortest_ns, longest_ns, proxied, proxy_ns}, ...]: a row for each class of
                    sizes (powers of two). communicator: index, -1 for others; bytes: of the larger side;
                    timed: calls whose kernel was timed, by the device's clock, with their bytes and times;
                    proxied: calls for which a proxy thread worked, and how long
    dropped, late   events that are missing

In a merged profile: `version`, and `ranks`, the above by rank.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION: Final = "nccl"
VERSION: Final = 1


def encode(content: Mapping[str, Any]) -> bytes:
    """Return the payload of the section, of one process."""
    return json.dumps({"version": VERSION, **content}, separators=(",", ":")).encode()


def joined(payloads: Mapping[int, bytes]) -> bytes:
    """Return the payload of a merged profile, from those of its ranks."""
    return encode({"ranks": {str(rank): json.loads(payload) for rank, payload in payloads.items()}})
