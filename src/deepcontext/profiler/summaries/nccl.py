"""Collectives of NCCL or RCCL by algorithm, protocol and size, from what the library itself tells.

Bandwidths are those of nccl-tests. The time of a kernel has waiting for slower ranks in it, which the
profile of one process cannot separate: the shortest kernel of a row waited least.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import nccl
from deepcontext.profiler.summaries.communication import bus_factor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Key = tuple[str, str, str, int, int]


@dataclass(frozen=True, slots=True)
class NcclCalls:
    """Calls of one operation, with one algorithm and protocol, whose sizes lie between two powers of two.

    Attributes:
        function: "AllReduce", "Send".
        algorithm: "RING", "TREE", "NVLS"; "" for sends.
        protocol: "LL", "LL128", "SIMPLE"; "" for sends.
        members: number of ranks of the communicator; 0 where unknown.
        calls: number of calls, of all ranks in the profile.
        size_bytes: mean of the larger side.
        kernel_ns: time of the kernels that were timed, sum.
        shortest_ns: of one kernel; 0 where none was timed.
        bytes_per_s: algorithm bandwidth, from the mean time of a kernel; 0 where unknown.
        bus_bytes_per_s: bus bandwidth, 0 where unknown.
        proxied_share: part of the calls for which a proxy thread worked, as for the network.
        proxy_ns: time of proxy threads, sum.
    """

    function: str
    algorithm: str
    protocol: str
    members: int
    calls: int
    size_bytes: int
    kernel_ns: int
    shortest_ns: int
    bytes_per_s: float
    bus_bytes_per_s: float
    proxied_share: float
    proxy_ns: int


def by_algorithm(profile: Profile) -> tuple[NcclCalls, ...]:
    """Return the calls of all ranks in a profile, longest kernels first; empty without the section.

    Raises:
        ProfileDataError: the section cannot be read.
    """
    payload = profile.sections.get(nccl.SECTION)
    if payload is None:
        return ()
    try:
        sums: dict[Key, dict[str, int]] = {}
        for key, row in _rows(json.loads(payload)):
            _add(sums.setdefault(key, {}), row)
        found = [_calls(key, values) for key, values in sums.items()]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ProfileDataError(
            f"section '{nccl.SECTION}' is damaged: {error}; record the profile again"
        ) from error
    return tuple(sorted(found, key=lambda row: (-row.kernel_ns, -row.calls, row.function)))


def _rows(content: Mapping[str, Any]) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    if content["version"] != nccl.VERSION:
        raise ValueError(f"version {content['version']}, this build reads {nccl.VERSION}")
    for row in content["calls"]:
        index = int(row["communicator"])
        members = int(content["communicators"][index]["ranks"]) if index >= 0 else 0
        size_class = (int(row["bytes"]) // int(row["calls"])).bit_length()
        names = (str(row["function"]), str(row["algorithm"]), str(row["protocol"]))
        yield (*names, members, size_class), row


def _add(sums: dict[str, int], row: Mapping[str, Any]) -> None:
    for name in ("calls", "bytes", "timed", "timed_bytes", "kernel_ns", "proxied", "proxy_ns"):
        sums[name] = sums.get(name, 0) + int(row[name])
    if row["timed"]:
        shortest = int(row["shortest_ns"])
        sums["shortest_ns"] = min(sums.get("shortest_ns", shortest), shortest)


def _calls(key: Key, sums: Mapping[str, int]) -> NcclCalls:
    function, algorithm, protocol, members, _ = key
    kernel_s = sums["kernel_ns"] / 1e9
    rate = sums["timed_bytes"] / kernel_s if kernel_s else 0.0
    return NcclCalls(
        function=function,
        algorithm=algorithm,
        protocol=protocol,
        members=members,
        calls=sums["calls"],
        size_bytes=round(sums["bytes"] / sums["calls"]),
        kernel_ns=sums["kernel_ns"],
        shortest_ns=sums.get("shortest_ns", 0),
        bytes_per_s=rate,
        bus_bytes_per_s=rate * bus_factor(function, members) if members else 0.0,
        proxied_share=sums["proxied"] / sums["calls"],
        proxy_ns=sums["proxy_ns"],
    )
