"""Single collectives of joined ranks: the same numbers of all ranks, fewer the more ranks there are.

A rank's own section has up to 1,024 collectives, which would be 60 MB for a thousand ranks. Of each rank
the runs of numbers with the smallest hashes stay, so many as follow from the number of ranks. All ranks
choose the same ones, and with more ranks fewer of the same stay, so that joining is associative.
Invariant: two results of the same ranks are the same bytes, in whatever order they were joined.

A payload is JSON, compressed with zlib: {"ranks": {RANK: content of the rank's section}, ...}, where
`rows`, `samples` and `places` are those of collectives that stay (`format/rank_collectives.py`).
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format import rank_collectives

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Of all ranks together; each rank has some.
_MOST_ROWS: Final = 65_536
_FEWEST_RUNS: Final = 4
# Numbers stay in runs of four, so that most have the one before beside them.
_RUN_BITS: Final = 2
_MASK: Final = (1 << 64) - 1


def of_rank(rank: int, payload: bytes) -> bytes | None:
    """Return the payload of one rank; None where the section cannot be read."""
    try:
        content = json.loads(payload)
        if content["version"] not in rank_collectives.COLUMNS:
            return None
        return _packed({str(rank): content})
    except (ValueError, TypeError, KeyError):
        return None


def joined(payloads: Sequence[bytes]) -> bytes:
    """Return the payload of the ranks of all payloads."""
    ranks: dict[str, Any] = {}
    for payload in payloads:
        ranks |= json.loads(zlib.decompress(payload))["ranks"]
    runs = max(_FEWEST_RUNS, _MOST_ROWS // len(ranks) >> _RUN_BITS)
    return _packed({rank: _thinned(content, runs) for rank, content in ranks.items()})


def _packed(ranks: Mapping[str, Any]) -> bytes:
    ordered = {rank: ranks[rank] for rank in sorted(ranks, key=int)}
    return zlib.compress(json.dumps({"ranks": ordered}, separators=(",", ":")).encode(), 6)


def _thinned(content: Mapping[str, Any], runs: int) -> dict[str, Any]:
    """Return the content with so many runs of numbers, of all groups together."""
    hashes = sorted(
        _hash(run) for _, run in {(row[0], row[1] >> _RUN_BITS) for row in content["rows"]}
    )
    largest = hashes[:runs][-1] if hashes else 0
    rows = [row for row in content["rows"] if _hash(row[1] >> _RUN_BITS) <= largest]
    orders = {row[2] for row in rows}
    samples = [sample for sample in content["samples"] if sample[0] in orders]
    used = sorted({sample[1] for sample in samples})
    place = {index: at for at, index in enumerate(used)}
    return {
        **content,
        "rows": rows,
        "samples": [[order, place[at], *rest] for order, at, *rest in samples],
        "places": [content["places"][index] for index in used],
    }


def _hash(run: int) -> int:
    """Return 64 bits.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
    """
    value = (run + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31
