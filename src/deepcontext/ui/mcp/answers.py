"""The questions of an agent and their answers: JSON's types, each value with its unit and its place.

Does not know the protocol (`server.py`). Reads profiles, and only those source files that a profile
names. Invariant: an answer has at most `MOST_ROWS` rows, because an agent pays for each word.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepcontext.analyzers import known_findings
from deepcontext.errors import UserError
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.source import known_text
from deepcontext.profiler.summaries.basis import basis_of, comparable
from deepcontext.profiler.summaries.comparison import compare
from deepcontext.profiler.summaries.lines import by_python_line
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.steps import step_count
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.ui.evidence import evidence
from deepcontext.ui.known_peaks import with_known_peaks
from deepcontext.ui.report.difference import difference_to_dict
from deepcontext.ui.report.machine import report_to_dict
from deepcontext.ui.sections import groups
from deepcontext.ui.sections.account import account_to_dict, basis_to_dict
from deepcontext.ui.sections.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile

    Answer = dict[str, Any]

MOST_ROWS: Final = 200
_MOST_LINES: Final = 400
_MOST_KEPT: Final = 4
_RUN: Final = (
    *("script", "cwd", "hostname", "cpu_count", "frameworks", "exit_reason"),
    *("wall_ns", "cpu_user_ns", "cpu_system_ns", "peak_rss_bytes"),
)
_REPORT: Final = ("operator_time_ns", "operator_calls", "steps", "phases", "gpu")
_MOST_PLACES: Final = 10


class Answers:
    """Reads profiles and answers questions about them. One thread at a time."""

    def __init__(
        self, load: Callable[[str], Profile], load_all: Callable[[str], Sequence[Profile]]
    ) -> None:
        """Keep the profiles that were requested last.

        Args:
            load: returns the profile of a file, or the profile to show of a run directory.
            load_all: returns the profile of a file, or all profiles of a run directory.
        """
        self._load = load
        self._load_all = load_all
        self._kept: OrderedDict[str, tuple[object, Profile]] = OrderedDict()

    def summary(self, file: str) -> Answer:
        """Return what was run, what limits it, where the time went, and what the profile lacks.

        Raises:
            DeepContextError: the profile cannot be read.
        """
        profile = self._profile(file)
        report: Answer = report_to_dict(profile, limit=1)
        return {
            "file": file,
            "run": {name: report["run"][name] for name in _RUN},
            "basis": report["basis"],
            "account": account_to_dict(View(profile, default_metric(profile), _MOST_PLACES)),
            "metric": report["metric"],
            "total": report["total"],
            **{name: report[name] for name in _REPORT},
            "metrics": sorted(profile.metrics),
            "findings": [finding.title for finding in self._findings(file)],
            "warnings": report["trust"]["warnings"],
        }

    def explain(self, file: str) -> Answer:
        """Return one compact document: see `deepcontext.ui.evidence`.

        Raises:
            DeepContextError: the profile cannot be read.
        """
        return evidence(self._profile(file), self._load_all(file))

    def top(self, file: str, of: str, metric: str | None, limit: int) -> Answer:
        """Return the costliest lines, operators, modules, scopes or kernels.

        Args:
            file: the profile.
            of: plural name of a table, ``lines``.
            metric: the metric that orders the rows; None for the one that the report uses.
            limit: number of rows, `MOST_ROWS` at most.

        Raises:
            UserError: there is no such table.
            QueryError: the profile has no such metric.
            DeepContextError: the profile cannot be read.
        """
        profile = self._profile(file)
        tables = {table.plural: name for name, table in TABLES.items()}
        if of not in tables:
            raise UserError(f"there is no table '{of}'; tables are {', '.join(tables)}")
        view = View(profile, metric or default_metric(profile), _rows(limit))
        total = int(profile.inclusive(view.metric)[0])
        table = groups.table_to_dict(view, tables[of])
        return {**_measure(profile, view.metric), "total": total, **table}

    def paths(self, file: str, metric: str | None, limit: int) -> Answer:
        """Return the call paths with the largest own value, from the thread down to the operator.

        Raises:
            QueryError: the profile has no such metric.
            DeepContextError: the profile cannot be read.
        """
        profile = self._profile(file)
        metric = metric or default_metric(profile)
        rows = profile.hot_paths(metric, _rows(limit), inclusive=False)
        return {
            **_measure(profile, metric),
            "rows": [
                {
                    "exclusive": row.exclusive,
                    "share": row.share,
                    "events": row.count,
                    "path": [str(frame) for frame in row.frames],
                }
                for row in rows
            ],
        }

    def findings(self, file: str) -> Answer:
        """Return what to change, with the largest possible gain; as `deepcontext analyze --json`.

        Raises:
            DeepContextError: the profile cannot be read.
        """
        profile = self._profile(file)
        return {"findings": [each.to_dict(profile) for each in self._findings(file)]}

    def source(
        self, file: str, source_file: str, first: int, last: int | None, metric: str | None
    ) -> Answer:
        """Return lines of a source file with their cost.

        Args:
            file: the profile.
            source_file: a file that the profile names, or the end of its path.
            first: the first line, 1-based.
            last: the last line; None for 400 lines at most.
            metric: as in `top`.

        Raises:
            UserError: the profile names no such file, or several.
            QueryError: the profile has no such metric.
            DeepContextError: the profile cannot be read.
        """
        profile = self._profile(file)
        metric = metric or default_metric(profile)
        path = _source_file(profile, source_file)
        table = by_python_line(profile, metric, 0)
        costs = {row.line: row for row in table.rows if row.file == path}
        first = max(first, 1)
        end = min(first + _MOST_LINES - 1, last or first + _MOST_LINES - 1)
        text_of_file = known_text(profile, path)
        known = max(costs, default=0)
        rows = []
        for line in range(first, end + 1):
            text = text_of_file.lines.get(line, "").strip() if text_of_file.is_certain else ""
            if not text and line > known:
                continue  # blank, or past the end
            cost = costs.get(line)
            rows.append({
                "line": line,
                "text": text,
                "inclusive": cost.inclusive if cost else 0,
                "exclusive": cost.exclusive if cost else 0,
            })
        return {"file": path, **_measure(profile, metric), "total": table.total, "rows": rows}

    def diff(self, before: str, after: str, limit: int) -> Answer:
        """Return what changed between two profiles; as `deepcontext diff --json`.

        Raises:
            DeepContextError: a profile cannot be read.
        """
        profiles = comparable(self._profile(before), self._profile(after))
        steps = (step_count(profiles[0]), step_count(profiles[1]))
        comparison = compare(*profiles, None, steps if all(steps) else None)
        return difference_to_dict(comparison, _rows(limit))

    def _findings(self, file: str) -> Sequence[Finding]:
        return known_findings(self._profile(file), lambda: self._load_all(file)).found

    def _profile(self, file: str) -> Profile:
        """Return the basis of a profile: its steady state, if it has one."""
        identity = _identity(file)
        kept = self._kept.pop(file, None)
        if kept is None or kept[0] != identity:
            profile = with_known_peaks(self._load(file), None)
            kept = (identity, basis_of(profile).profile)
        self._kept[file] = kept
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return kept[1]


def _identity(file: str) -> object:
    """Return what changes when a profile is written again; a run directory stands for its files."""
    path = Path(file)
    files = run_directory.profiles(path) if run_directory.is_run(path) else [path]
    try:
        return tuple((each, (found := each.stat()).st_mtime_ns, found.st_size) for each in files)
    except OSError:
        return None  # loading says why


def _rows(limit: int) -> int:
    return min(max(limit, 1), MOST_ROWS)


def _measure(profile: Profile, metric: str) -> Answer:
    descriptor = profile.metrics[metric].descriptor
    metric_shown = {"name": descriptor.name, "unit": descriptor.unit}
    return {"metric": metric_shown, "basis": basis_to_dict(profile)}


def _source_file(profile: Profile, name: str) -> str:
    files = _files(profile)
    if name in files:
        return name
    end = "/" + name.lstrip("/")
    found = [file for file in files if file.endswith(end)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"the profile names no source file '{name}'")
    raise UserError(f"the profile names {len(found)} files '{name}': {', '.join(found[:5])}")


def _files(profile: Profile) -> Sequence[str]:
    frames = (frame for frame in profile.frames if frame.kind is FrameKind.PYTHON)
    return sorted({frame.file for frame in frames if frame.file})
