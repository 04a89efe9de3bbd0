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

In a merged profile, sums over the ranks: communicators with equal `ranks` and `nodes` are one, without `id`
and `rank` (-1).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECTION: Final = "nccl"
VERSION: Final = 1
_SUMS: Final = ("calls", "bytes", "timed", "timed_bytes", "kernel_ns", "proxied", "proxy_ns")


def encode(content: Mapping[str, Any]) -> bytes:
    """Return the payload of the section, of one process."""
    return json.dumps({"version": VERSION, **content}, separators=(",", ":")).encode()


def summed(payloads: Sequence[bytes]) -> bytes | None:
    """Return the payload of several processes; None if one of them cannot be read."""
    try:
        return _summed([json.loads(payload) for payload in payloads])
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def _summed(contents: Sequence[Mapping[str, Any]]) -> bytes:
    communicators: dict[tuple[int, int], int] = {}
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for content in contents:
        if content["version"] != VERSION:
            raise ValueError(content["version"])
        # Alike communicators are one, because a large job has thousands.
        index = [
            communicators.setdefault((each["ranks"], each["nodes"]), len(communicators))
            for each in content["communicators"]
        ]
        for row in content["calls"]:
            at = index[row["communicator"]] if row["communicator"] >= 0 else -1
            size_class = (row["bytes"] // row["calls"]).bit_length()
            key = (at, row["function"], row["algorithm"], row["protocol"], size_class)
            nothing: dict[str, Any] = dict.fromkeys(_SUMS, 0)
            _add(rows.setdefault(key, {**row, "communicator": at, **nothing}), row)
    return encode({
        "communicators": [
            {"id": "", "ranks": ranks, "rank": -1, "nodes": nodes} for ranks, nodes in communicators
        ],
        "calls": [rows[key] for key in sorted(rows)],
        **{name: sum(content[name] for content in contents) for name in ("dropped", "late")},
    })


def _add(to: dict[str, Any], row: Mapping[str, Any]) -> None:
    if row["timed"]:
        of_timed = [each["shortest_ns"] for each in (to, row) if each["timed"]]
        to["shortest_ns"] = min(of_timed)
        to["longest_ns"] = max(to["longest_ns"], row["longest_ns"])
    for name in _SUMS:
        to[name] += row[name]
