"""The tables of profiles: `processes`, and `costs` with a row for each metric of each call path.

`costs` is a view over rows of numbers and over `call_paths`, which stores a call path of many
processes once. Invariant: the sum of `exclusive` over the rows of a summed metric is the profile's
total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.model.run_info import ALL_RANKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.ui.sql.database import Database

SEPARATOR: Final = ";"
_NO_PATH: Final = -1
_ROOT: Final = 0  # node
_SCHEMA: Final = (
    """CREATE TABLE processes (
        process INTEGER, profile VARCHAR, host VARCHAR, rank INTEGER, ranks INTEGER, pid BIGINT,
        parent_pid BIGINT, process_name VARCHAR, attempt INTEGER, command VARCHAR,
        start_unix_ns BIGINT, wall_ns BIGINT, cpu_user_ns BIGINT, cpu_system_ns BIGINT,
        peak_rss_bytes BIGINT, steps BIGINT, exit_reason VARCHAR)""",
    """CREATE TABLE call_paths (
        call_path INTEGER, depth INTEGER, kind VARCHAR, name VARCHAR, file VARCHAR, line INTEGER,
        phase VARCHAR, path VARCHAR)""",
    "CREATE TABLE nodes (process INTEGER, rank INTEGER, node INTEGER, parent INTEGER, call_path INTEGER)",
    """CREATE TABLE metrics (
        metric_number INTEGER, metric VARCHAR, unit VARCHAR, aggregation VARCHAR)""",
    """CREATE TABLE cost_rows (
        process INTEGER, metric_number INTEGER, node INTEGER, count BIGINT, exclusive BIGINT,
        inclusive BIGINT, least BIGINT, most BIGINT)""",
    """CREATE VIEW costs AS
        SELECT profile, host, nodes.rank AS rank, pid, node, parent, depth, kind, name, file, line, phase,
            path, metric, unit, aggregation, count, exclusive, inclusive, least, most
        FROM cost_rows JOIN nodes USING (process, node) JOIN call_paths USING (call_path)
            JOIN metrics USING (metric_number) JOIN processes USING (process)""",
)


class Tables:
    """Fills the tables of a database, one profile after the other."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._processes = 0
        self._metrics: dict[tuple[str, str, str], int] = {}
        self._frames: dict[tuple[int, str, str, int], int] = {}
        # By call path above, frame and phase.
        self._paths: dict[tuple[int, int, int], int] = {}
        self._texts: list[str] = []
        for statement in _SCHEMA:
            database.run(statement)

    def add(self, profile: Profile) -> None:
        """Add a profile: of one process, or of a merged job."""
        number, tree = self._processes, profile.tree
        self._processes += 1
        _add_process(self._database, profile, number)
        self._database.insert(
            "nodes",
            {
                "process": np.full(len(tree), number, np.int32),
                "rank": _ranks(profile),
                "node": np.arange(len(tree), dtype=np.int32),
                "parent": tree.parent,
                "call_path": self._call_paths(profile),
            },
        )
        for name, rows in profile.metrics.items():
            values = _values(profile, name, rows)
            fixed = (number, self._metric(rows))
            columns = {
                str(place): np.full(len(values["node"]), value, np.int32)
                for place, value in enumerate(fixed)
            }
            self._database.insert("cost_rows", columns | values)

    def _metric(self, rows: MetricRows) -> int:
        """Return the number of a metric, which is added if it is new."""
        descriptor = rows.descriptor
        key = (descriptor.name, descriptor.unit, descriptor.aggregation.name.lower())
        if key not in self._metrics:
            self._metrics[key] = len(self._metrics)
            self._database.run(
                "INSERT INTO metrics VALUES (?, ?, ?, ?)", [self._metrics[key], *key]
            )
        return self._metrics[key]

    def _call_paths(self, profile: Profile) -> npt.NDArray[np.int32]:
        """Return the call path of each node; add those that no profile before had."""
        tree = profile.tree
        strings = [_clean(text) for text in profile.frames.strings]
        names = [strings[int(index)] for index in profile.frames.name.tolist()]
        frames = self._frame_numbers(profile, strings, names)
        found = [_NO_PATH] * len(tree)
        new = []
        columns = zip(tree.parent.tolist(), tree.frame.tolist(), tree.phase.tolist(), strict=True)
        for node, (parent, frame, phase) in enumerate(columns):
            above = _NO_PATH if node == _ROOT else found[parent]
            key = (above, frames[frame], phase)
            known = self._paths.setdefault(key, len(self._paths))
            if known == len(self._texts):
                is_first = _ROOT in {node, parent}
                before = "" if is_first else self._texts[above] + SEPARATOR
                self._texts.append("" if node == _ROOT else before + names[frame])
                new.append(node)
            found[node] = known
        self._insert_paths(profile, strings, found, new)
        return np.array(found, np.int32)

    def _frame_numbers(
        self, profile: Profile, strings: Sequence[str], names: Sequence[str]
    ) -> list[int]:
        frames = profile.frames
        files = [strings[int(index)] for index in frames.file.tolist()]
        keys = zip(frames.kind.tolist(), names, files, frames.line.tolist(), strict=True)
        return [self._frames.setdefault(key, len(self._frames)) for key in keys]

    def _insert_paths(
        self, profile: Profile, strings: Sequence[str], found: Sequence[int], new: Sequence[int]
    ) -> None:
        if not new:
            return
        frames, tree, texts = profile.frames, profile.tree, np.array(strings, object)
        node = np.array(new, np.intp)
        frame = tree.frame[node]
        numbers = [found[each] for each in new]
        kinds = np.array([kind.label for kind in FrameKind], object)
        phases = np.array([phase.label for phase in Phase], object)
        phases[Phase.NONE] = ""
        self._database.insert(
            "call_paths",
            {
                "call_path": np.array(numbers, np.int32),
                "depth": tree.depth[node].astype(np.int32),
                "kind": kinds[frames.kind[frame]],
                "name": texts[frames.name[frame]],
                "file": texts[frames.file[frame]],
                "line": frames.line[frame].astype(np.int32),
                "phase": phases[tree.phase[node]],
                "path": np.array([self._texts[number] for number in numbers], object),
            },
        )


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


def _ranks(profile: Profile) -> Any:
    """Return the process's rank for each node, masked where there is none."""
    rank = _rank(profile.run)
    if rank is None:
        return _masked(len(profile.tree), np.int32)
    return np.full(len(profile.tree), rank, np.int32)


def _values(profile: Profile, name: str, rows: MetricRows) -> dict[str, Any]:
    """Return the columns of a metric, for nodes with a value at the node or below."""
    exclusive, inclusive = profile.exclusive(name), profile.inclusive(name)
    is_shown = inclusive != 0
    is_shown[rows.node] = True
    node = np.flatnonzero(is_shown)
    return {
        "node": node.astype(np.int32),
        "count": profile.counts(name)[node],
        "exclusive": exclusive[node],
        "inclusive": inclusive[node],
        "least": _extremes(rows.node, rows.minimum, node),
        "most": _extremes(rows.node, rows.maximum, node),
    }


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
