"""The tables of profiles: `processes`, and `costs` with a row for each metric of each call path.

`costs` is a view over `nodes` and `cost_rows`, so that no text is stored once for each metric.
Invariant: the sum of `exclusive` over the rows of a summed metric is the profile's total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.model.run_info import ALL_RANKS

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.ui.sql.database import Database

SEPARATOR: Final = ";"
SCHEMA: Final = (
    """CREATE TABLE processes (
        process INTEGER, profile VARCHAR, host VARCHAR, rank INTEGER, ranks INTEGER, pid BIGINT,
        parent_pid BIGINT, process_name VARCHAR, attempt INTEGER, command VARCHAR,
        start_unix_ns BIGINT, wall_ns BIGINT, cpu_user_ns BIGINT, cpu_system_ns BIGINT,
        peak_rss_bytes BIGINT, steps BIGINT, exit_reason VARCHAR)""",
    """CREATE TABLE nodes (
        process INTEGER, rank INTEGER, node BIGINT, parent BIGINT, depth INTEGER, kind VARCHAR,
        name VARCHAR, file VARCHAR, line INTEGER, phase VARCHAR, path VARCHAR)""",
    """CREATE TABLE cost_rows (
        process INTEGER, metric VARCHAR, unit VARCHAR, aggregation VARCHAR, node BIGINT,
        count BIGINT, exclusive BIGINT, inclusive BIGINT, least BIGINT, most BIGINT)""",
    """CREATE VIEW costs AS
        SELECT profile, host, nodes.rank AS rank, pid, node, parent, depth, kind, name, file, line, phase,
            path, metric, unit, aggregation, count, exclusive, inclusive, least, most
        FROM cost_rows JOIN nodes USING (process, node) JOIN processes USING (process)""",
)


def add(database: Database, profile: Profile, *, number: int) -> None:
    """Add a profile to the tables.

    Args:
        database: the tables.
        profile: one process, or a merged job.
        number: a number that no other profile of these tables has.
    """
    _add_process(database, profile, number)
    database.insert("nodes", _nodes(profile, number))
    for name, rows in profile.metrics.items():
        _add_metric(database, profile, number, name, rows)


def clear(database: Database) -> None:
    """Remove all rows."""
    for table in ("processes", "nodes", "cost_rows"):
        database.run(f"DELETE FROM {table}")  # noqa: S608


def _add_process(database: Database, profile: Profile, number: int) -> None:
    run = profile.run
    values = (
        number,
        profile.source,
        run.hostname,
        _rank(run),
        run.ranks,
        run.pid,
        run.parent_pid,
        run.process_name,
        run.attempt,
        " ".join(run.command),
        run.start_unix_ns,
        run.wall_ns,
        run.cpu_user_ns,
        run.cpu_system_ns,
        run.peak_rss_bytes,
        run.steps,
        run.exit_reason,
    )
    marks = ", ".join("?" * len(values))
    clean = [_clean(value) if isinstance(value, str) else value for value in values]
    database.run(f"INSERT INTO processes VALUES ({marks})", clean)  # noqa: S608


def _rank(run: RunInfo) -> int | None:
    """Return the rank of one process, None outside a job and where all ranks are together."""
    return run.rank if run.ranks and run.rank != ALL_RANKS else None


def _nodes(profile: Profile, number: int) -> dict[str, Any]:
    frames, tree = profile.frames, profile.tree
    strings = np.array([_clean(text) for text in frames.strings], object)
    name = strings[frames.name][tree.frame]
    kinds = np.array([kind.label for kind in FrameKind], object)
    phases = np.array([phase.label for phase in Phase], object)
    phases[Phase.NONE] = ""
    return {
        "process": np.full(len(tree), number, np.int32),
        "rank": _ranks(profile),
        "node": np.arange(len(tree)),
        "parent": tree.parent.astype(np.int64),
        "depth": tree.depth.astype(np.int32),
        "kind": kinds[frames.kind][tree.frame],
        "name": name,
        "file": strings[frames.file][tree.frame],
        "line": frames.line[tree.frame].astype(np.int32),
        "phase": phases[tree.phase],
        "path": _paths(name.tolist(), tree.parent.tolist()),
    }


def _paths(names: list[str], parents: list[int]) -> npt.NDArray[np.object_]:
    """Return the names from the root down, without the root's; a parent comes before its children."""
    paths = [""] * len(names)
    for node in range(1, len(names)):
        above = paths[parents[node]]
        paths[node] = f"{above}{SEPARATOR}{names[node]}" if above else names[node]
    return np.array(paths, object)


def _ranks(profile: Profile) -> Any:
    """Return each node's rank, masked where there is none: the process's, or that of a frame above."""
    frames, tree = profile.frames, profile.tree
    rank = _rank(profile.run)
    if rank is not None:
        return np.full(len(tree), rank, np.int32)
    found = _masked(len(tree), np.int32)
    heads = np.flatnonzero(frames.kind[tree.frame] == FrameKind.RANK)
    of_rank = frames.line[tree.frame[heads]].tolist()
    for head, number in zip(heads.tolist(), of_rank, strict=True):
        found[head : int(tree.subtree_end[head])] = number
    return found


def _add_metric(
    database: Database, profile: Profile, number: int, name: str, rows: MetricRows
) -> None:
    exclusive, inclusive = profile.exclusive(name), profile.inclusive(name)
    counts = profile.counts(name)
    is_shown = inclusive != 0
    is_shown[rows.node] = True
    node = np.flatnonzero(is_shown)
    descriptor = rows.descriptor
    database.insert(
        "cost_rows",
        {
            "process": np.full(len(node), number, np.int32),
            "metric": np.full(len(node), name, object),
            "unit": np.full(len(node), descriptor.unit, object),
            "aggregation": np.full(len(node), descriptor.aggregation.name.lower(), object),
            "node": node,
            "count": counts[node],
            "exclusive": exclusive[node],
            "inclusive": inclusive[node],
            "least": _extremes(rows.node, rows.minimum, node),
            "most": _extremes(rows.node, rows.maximum, node),
        },
    )


def _extremes(
    having: npt.NDArray[np.uint32],
    values: npt.NDArray[np.int64] | None,
    node: npt.NDArray[np.intp],
) -> Any:
    """Return the value of each node, masked where none was recorded."""
    found = _masked(len(node), np.int64)
    if values is not None:
        found[np.searchsorted(node, having)] = values
    return found


def _masked(length: int, dtype: npt.DTypeLike) -> Any:
    """Return an array whose values are all masked; the database reads them as NULL."""
    return np.ma.array(np.zeros(length, dtype), mask=True)


def _clean(text: str) -> str:
    """Return a text without lone surrogates (undecodable bytes of a file name), which have no UTF-8 form."""
    return text.encode("utf-8", "replace").decode()
