"""The sections of a job's profile: how each is packed, and how to read it.

    SECTION     FACTS                               COLUMNS
    paths       ranks, kernels_rank, differing,     key u8, seen u4 (a row a node); frame u8 (a row a
                files                               frame)
    spread      metrics                             of metric i, "i.ranks" and so on: `Spread`
    ranks       rows (`RankRow`), trust             -
    columns     metrics, step                       node u4, rank i4, is_whole u1, of metric i: i u2

Does not make the tree (`artifact.py`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.model.job.columns import STEP, Columns
from deepcontext.profiler.model.job.packing import Packed, damage, pack, unpack
from deepcontext.profiler.model.job.rank_row import RankRow
from deepcontext.profiler.model.job.spread import Spread
from deepcontext.profiler.model.job.trust_sums import CollectorSums, TrustSums, ranges_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel

PATHS: Final = "paths"
SPREAD: Final = "spread"
RANKS: Final = "ranks"
COLUMNS: Final = "columns"
ALL: Final = (PATHS, SPREAD, RANKS, COLUMNS)


def is_job(profile: ProfileModel) -> bool:
    """Return whether the profile is a joined tree of ranks."""
    return PATHS in profile.sections


def content(profile: ProfileModel, section: str) -> Packed:
    """Return the content of a section of a job's profile.

    Raises:
        ProfileDataError: the section is missing or damaged.
    """
    if section not in profile.sections:
        raise damage(section, "it is missing")
    return unpack(profile.sections[section], section)


def pack_spreads(spreads: Mapping[str, Spread]) -> bytes:
    """Return the payload of section `spread`; `node` of each row is a node of the tree."""
    columns = {
        f"{number}.{name}": column
        for number, metric in enumerate(spreads)
        for name, column in spreads[metric].columns().items()
    }
    return pack({"metrics": list(spreads)}, columns)


def spreads_of(profile: ProfileModel) -> dict[str, Spread]:
    """Return the spread of each metric over the ranks; `node` is a node of the tree."""
    packed = content(profile, SPREAD)
    names = [each.name for each in dataclasses.fields(Spread)]
    metrics = packed.facts.get("metrics")
    if not isinstance(metrics, list):
        raise damage(SPREAD, "'metrics' is missing")
    found = {}
    for number, metric in enumerate(metrics):
        columns = [packed.columns.get(f"{number}.{name}") for name in names]
        present = [column for column in columns if column is not None and column.ndim == 1]
        if len(present) < len(names) or len({len(column) for column in present}) > 1:
            raise damage(SPREAD, f"a column of '{metric}' is missing, or too long or short")
        check_below(SPREAD, present[0], len(profile.tree))
        found[str(metric)] = Spread(*present)
    return found


def pack_columns(columns: Columns, node: npt.NDArray[np.uint32]) -> bytes:
    """Return the payload of section `columns`; `node` has the node of each path of `columns`."""
    order = np.argsort(node, kind="stable")
    return pack(
        {"metrics": list(columns.codes), "step": STEP},
        {
            "node": node[order],
            "rank": columns.rank,
            "is_whole": columns.is_whole.astype(np.uint8),
            **{str(number): codes[order] for number, codes in enumerate(columns.codes.values())},
        },
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """The values of every rank at some nodes.

    Attributes:
        node: the nodes, ascending, shape (nodes,).
        columns: `key` has the nodes instead of keys.
    """

    node: npt.NDArray[np.uint32]
    columns: Columns


def columns_of(profile: ProfileModel) -> NodeColumns:
    """Return the values of every rank at the largest nodes."""
    packed = content(profile, COLUMNS)
    try:
        node, rank = packed.columns["node"], packed.columns["rank"]
        codes = {
            str(metric): packed.columns[str(number)]
            for number, metric in enumerate(packed.facts["metrics"])
        }
        is_whole = packed.columns["is_whole"].astype(np.bool_)
    except (KeyError, TypeError) as error:
        raise damage(COLUMNS, f"{error} is missing") from error
    rows = [column.ndim == 1 for column in (node, rank, is_whole)]
    tables = [table.shape == (len(node), len(rank)) for table in codes.values()]
    if not all(rows + tables) or len(is_whole) != len(rank):
        raise damage(COLUMNS, f"a metric has other than {len(node)} nodes of {len(rank)} ranks")
    check_below(COLUMNS, node, len(profile.tree))
    return NodeColumns(node, Columns(node.astype(np.uint64), rank, is_whole, codes))


def pack_ranks(rows: Sequence[RankRow], trust: TrustSums) -> bytes:
    """Return the payload of section `ranks`."""
    facts = {
        "rows": [dataclasses.asdict(row) for row in rows],
        "trust": {
            **dataclasses.asdict(trust),
            "notes": {note: ranges_of(ranks) for note, ranks in sorted(trust.notes.items())},
            "counters": dict(sorted(trust.counters.items())),
            "collectors": {
                name: {
                    "outcomes": [
                        {"status": status, "reason": reason, "ranks": ranges_of(ranks)}
                        for (status, reason), ranks in sorted(sums.ranks.items())
                    ],
                    "details": dict(sorted(sums.details.items())),
                }
                for name, sums in sorted(trust.collectors.items())
            },
        },
    }
    return pack(facts, {})


def rows_of(profile: ProfileModel) -> tuple[RankRow, ...]:
    """Return what is known of each rank, ascending by number."""
    return _rows(content(profile, RANKS))


def ranks_of(profile: ProfileModel) -> tuple[tuple[RankRow, ...], TrustSums]:
    """Return what is known of each rank, and their trust."""
    packed = content(profile, RANKS)
    try:
        return _rows(packed), _trust(packed.facts["trust"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damage(RANKS, f"'trust': {error}") from error


def check_below(section: str, nodes: npt.NDArray[Any], size: int) -> None:
    """Check that a column of node numbers is below the number of nodes.

    Raises:
        ProfileDataError: a number is too large.
    """
    if len(nodes) and int(nodes.max()) >= size:
        raise damage(section, f"node {nodes.max()} of {size} nodes")


def _rows(packed: Packed) -> tuple[RankRow, ...]:
    known = {each.name for each in dataclasses.fields(RankRow)}
    try:
        rows = []
        for row in packed.facts["rows"]:
            values: dict[str, Any] = {name: row[name] for name in row if name in known}
            found = RankRow(**{**values, "lacking": tuple(values.get("lacking", ()))})
            _check_types(found)
            rows.append(found)
        return tuple(sorted(rows, key=lambda row: row.rank))
    except (KeyError, TypeError, AttributeError) as error:
        raise damage(RANKS, f"'rows': {error}") from error


def _check_types(row: RankRow) -> None:
    """Raise TypeError unless the values of a row have the types of the defaults."""
    default = RankRow(0)
    for each in dataclasses.fields(RankRow):
        value = getattr(row, each.name)
        if type(value) is not type(getattr(default, each.name)):
            raise TypeError(f"'{each.name}' is {value!r}")


def _trust(facts: Mapping[str, Any]) -> TrustSums:
    return TrustSums(
        {str(name): int(value) for name, value in facts["counters"].items()},
        {str(note): _numbers(ranges) for note, ranges in facts["notes"].items()},
        {
            str(name): CollectorSums(
                {
                    (str(each["status"]), str(each["reason"])): _numbers(each["ranks"])
                    for each in sums["outcomes"]
                },
                dict(sums["details"]),
            )
            for name, sums in facts["collectors"].items()
        },
        int(facts["hook_cost_ps"]),
        int(facts["hook_costs"]),
    )


def _numbers(ranges: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(number for first, last in ranges for number in range(first, last + 1))
