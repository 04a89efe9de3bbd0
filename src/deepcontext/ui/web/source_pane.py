"""Answers with source text: files that the profile names, and the cost of their lines.

Invariant: no request can make the server read any other file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.summaries.lines import by_python_line
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
# In one file, text of libraries is kept short.
_AROUND_LIBRARY: Final = 2
_LONGEST_LINE: Final = 400
_MOST_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceText:
    """What a one-file page holds of a source file; costs are computed by the page.

    Attributes:
        shown: the path shortened for display.
        library: whether the file is outside the user's code.
        note: why the text is missing or may be wrong.
        length: number of lines of the whole text.
        lines: the text, or the parts of it around lines with a cost.
    """

    shown: str
    library: bool
    note: str
    length: int
    lines: list[TextPart]


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


def source_texts(profile: Profile, *, with_text: bool) -> dict[str, SourceText]:
    """Return the text of each Python file that a profile names.

    Args:
        profile: the profile.
        with_text: whether the files may be read.
    """
    frames = profile.frames
    is_line = (frames.kind == FrameKind.PYTHON) & (frames.line > 0)
    lines: dict[int, set[int]] = {}
    for file, line in zip(
        frames.file[is_line].tolist(), frames.line[is_line].tolist(), strict=True
    ):
        lines.setdefault(file, set()).add(line)
    texts = {}
    for number, named in lines.items():
        path = frames.strings[number]
        is_user = is_user_file(path)
        content, note = _read(path, profile) if with_text else ([], NO_TEXT)
        texts[path] = SourceText(
            shown=shorten_path(path, profile.run.cwd),
            library=not is_user,
            note=note,
            length=len(content),
            lines=_parts(content, sorted(named), None if is_user else _AROUND_LIBRARY),
        )
    return texts


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


def _parts(content: list[str], lines: list[int], around: int | None = None) -> list[TextPart]:
    """Return the whole text; of a long file, or with `around`, only the text around given lines."""
    if not content:
        return []
    shown = np.zeros(len(content), np.bool_)
    if around is None and len(content) <= _WHOLE_LINES:
        shown[:] = True
    reach = _AROUND if around is None else around
    for line in lines:
        shown[max(line - 1 - reach, 0) : line + reach] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shown.view(np.int8), [0]])))
    return [
        TextPart(int(first) + 1, [line[:_LONGEST_LINE] for line in content[first:end]])
        for first, end in zip(edges[::2], edges[1::2], strict=True)
    ]
