"""Answers with source text: files that the profile names, and the cost of their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.errors import QueryError
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.summaries.lines import by_python_line
from deepcontext.ui.format import shorten_path
from deepcontext.ui.measures import measure_named, metric_of
from deepcontext.ui.web.source_text import source_text
from tests.ui.oracle.answers import FileRow, FilesAnswer, LineCost, SourceAnswer
from tests.ui.oracle.tables import group_table

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import GroupTable
    from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

_MOST_FILES: Final = 500


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
    text = source_text(opened.profile, path, with_text=profiles.source_text)
    note = text.note
    if text.length and costs[-1].line > text.length:
        note = f"the file has {text.length} lines, the profile names line {costs[-1].line}"
    return SourceAnswer(
        file=path,
        shown=shorten_path(path, opened.profile.run.cwd),
        unit=measure_named(opened.profile, metric).unit,
        total=lines.total,
        note=note,
        parts=text.parts,
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
    for group in by_python_line(profile, metric).rows:
        if not is_user_file(group.file):
            cost = LineCost(group.line, group.name, group.inclusive, group.exclusive)
            of_file.setdefault(group.file, []).append(cost)
    return _Lines(of_file, by_line.total)
