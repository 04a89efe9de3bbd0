"""Answers with source text: files that the profile names, and the cost of their lines.

Invariant: no request can make the server read any other file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.model.source import is_user_file
from deepcontext.ui.format import shorten_path
from deepcontext.ui.measures import measure_named, metric_of
from deepcontext.ui.web.answers import FileRow, FilesAnswer, LineCost, SourceAnswer, TextPart
from deepcontext.ui.web.tables import group_table

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import GroupTable
    from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

NO_TEXT: Final = "source text is left out because of --no-source"
_MOST_FILES: Final = 500
# Of a longer file, only text around lines with a cost is sent.
_WHOLE_LINES: Final = 2_000
_AROUND: Final = 30
_LONGEST_LINE: Final = 400
_MOST_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Lines:
    """Costs of all source lines by file, and the sum of their exclusive costs."""

    of_file: dict[str, list[LineCost]]
    total: int


def files(profiles: OpenProfiles, file: int, metric: str) -> FilesAnswer:
    """Return the source files of a profile.

    Raises:
        QueryError: unknown measure.
    """
    opened = profiles.get(file)
    lines = _lines(profiles, opened, metric)
    rows = [
        FileRow(
            file=path,
            shown=shorten_path(path, opened.profile.run.cwd),
            library=not is_user_file(path),
            exclusive=sum(cost.exclusive for cost in costs),
        )
        for path, costs in lines.of_file.items()
    ]
    rows.sort(key=lambda row: (row.library, -row.exclusive, row.file))
    unit = measure_named(opened.profile, metric).unit
    return FilesAnswer(unit, lines.total, rows[:_MOST_FILES])


def source(profiles: OpenProfiles, file: int, path: str, metric: str) -> SourceAnswer:
    """Return a source file with the cost of its lines.

    Args:
        profiles: the profiles.
        file: index of the profile.
        path: a file, spelled exactly as in the profile.
        metric: key of a measure.

    Raises:
        QueryError: unknown measure, or a file that the profile does not name.
    """
    opened = profiles.get(file)
    lines = _lines(profiles, opened, metric)
    if path not in lines.of_file:
        raise QueryError("this profile names no such source file; open a file from the list")
    costs = sorted(lines.of_file[path], key=lambda cost: cost.line)
    content, note = _read(path, opened.profile) if profiles.source_text else ([], NO_TEXT)
    if content and costs[-1].line > len(content):
        note = f"the file has {len(content)} lines, the profile names line {costs[-1].line}"
    return SourceAnswer(
        file=path,
        shown=shorten_path(path, opened.profile.run.cwd),
        unit=measure_named(opened.profile, metric).unit,
        total=lines.total,
        note=note,
        parts=_parts(content, [cost.line for cost in costs]),
        costs=costs,
    )


def _lines(profiles: OpenProfiles, opened: OpenProfile, metric: str) -> _Lines:
    measure = measure_named(opened.profile, metric)
    name = metric_of(measure)
    if name is None:
        raise QueryError(f"lines show totals of metrics, not '{metric}'; choose another measure")
    # Made here, because `keep` holds a lock that cannot be taken twice.
    by_line = group_table(profiles, opened, "line", metric)
    return profiles.keep(
        ("lines", opened.version, name), lambda: _all_lines(opened.profile, name, by_line)
    )


def _all_lines(profile: Profile, metric: str, by_line: GroupTable) -> _Lines:
    """Collect the costs of all lines by file.

    A line of user code includes the cost of libraries it calls (`by_line`); a line of a library
    excludes costs that a deeper Python line accounts for.
    """
    of_file: dict[str, list[LineCost]] = {}
    for group in by_line.rows:
        cost = LineCost(group.line, group.name, group.inclusive, group.exclusive)
        of_file.setdefault(group.file, []).append(cost)
    for row in profile.query().table(metric, by="line"):
        frame = row.frame
        if frame is not None and frame.file and not is_user_file(frame.file):
            cost = LineCost(frame.line, frame.name, row.inclusive, row.exclusive)
            of_file.setdefault(frame.file, []).append(cost)
    return _Lines(of_file, by_line.total)


def _read(path: str, profile: Profile) -> tuple[list[str], str]:
    """Return the lines of a file, and why they are missing or may differ from the program's."""
    where = Path(path)
    try:
        status = where.stat()
        if not where.is_file() or status.st_size > _MOST_BYTES:
            return [], "the file is not source text"
        content = where.read_text("utf-8", "replace").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return [], f"the file cannot be read on this machine: {reason}"
    started = profile.run.start_unix_ns
    if started and status.st_mtime_ns > started:
        return content, "the file was changed after the program started: lines may have moved"
    return content, ""


def _parts(content: list[str], lines: list[int]) -> list[TextPart]:
    """Return the whole text; of a long file only the text around the given lines."""
    if not content:
        return []
    shown = np.zeros(len(content), np.bool_)
    if len(content) <= _WHOLE_LINES:
        shown[:] = True
    for line in lines:
        shown[max(line - 1 - _AROUND, 0) : line + _AROUND] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shown.view(np.int8), [0]])))
    return [
        TextPart(int(first) + 1, [line[:_LONGEST_LINE] for line in content[first:end]])
        for first, end in zip(edges[::2], edges[1::2], strict=True)
    ]
