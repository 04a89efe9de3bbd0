"""Answers with a table: what `profiler/summaries` computed, with a frame for each row's link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.summaries.phases import PHASES
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.profiler.views.layers import LAYER_OF_KIND
from deepcontext.ui.measures import measure_named, metric_of
from deepcontext.ui.web.about import calls_of
from tests.ui.oracle.answers import TableAnswer, TableRow

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.groups import Group, GroupTable
    from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

MOST_ROWS: Final = 500


def table(profiles: OpenProfiles, file: int, by: str, metric: str, text: str = "") -> TableAnswer:
    """Return a table, its largest rows first.

    Args:
        profiles: the profiles.
        file: index of the profile.
        by: name of the table.
        metric: key of a measure that is a metric's total.
        text: only rows whose name or file contains this text, ignoring case.

    Raises:
        QueryError: unknown table or measure.
    """
    opened = profiles.get(file)
    measure = measure_named(opened.profile, metric)
    groups = group_table(profiles, opened, by, metric)
    ids = profiles.keep(("ids", opened.version, by), lambda: _frame_ids(opened.profile, by))
    wanted = text.casefold()
    rows = [
        row
        for row in groups.rows
        if wanted in row.name.casefold() or wanted in f"{row.file}:{row.line}".casefold()
    ]
    layer = LAYER_OF_KIND[TABLES[by].kind].label
    return TableAnswer(
        unit=measure.unit,
        total=groups.total,
        row_count=groups.row_count,
        match_count=len(rows),
        phases=[phase.label for phase in PHASES],
        rows=[_row(row, ids, layer) for row in rows[:MOST_ROWS]],
    )


def group_table(profiles: OpenProfiles, opened: OpenProfile, by: str, metric: str) -> GroupTable:
    """Return all groups of a table; kept for the next question.

    Raises:
        QueryError: unknown table, or a measure that tables do not show.
    """
    if by not in TABLES:
        raise QueryError(f"no table by '{by}'; known: {', '.join(TABLES)}")
    name = metric_of(measure_named(opened.profile, metric))
    if name is None:
        raise QueryError(f"tables show totals of metrics, not '{metric}'; choose another measure")
    make = TABLES[by].make
    return profiles.keep(("table", opened.version, by, name), lambda: make(opened.profile, name, 0))


def _row(group: Group, ids: dict[tuple[str, str, int], int], layer: str) -> TableRow:
    key = ("", group.file, group.line) if group.file else (group.name, "", 0)
    return TableRow(
        id=ids[key],
        name=group.name,
        layer=layer,
        file=group.file,
        line=group.line,
        inclusive=group.inclusive,
        exclusive=group.exclusive,
        phases=list(group.phases),
        contexts=group.contexts,
        calls=calls_of(group.calls),
    )


def _frame_ids(profile: Profile, by: str) -> dict[tuple[str, str, int], int]:
    """Return a frame of each group: by name, or for lines by file and line."""
    kind = TABLES[by].kind
    ids: dict[tuple[str, str, int], int] = {}
    for index in np.flatnonzero(profile.frames.kind == kind).tolist():
        frame = profile.frames[index]
        key = ("", frame.file, frame.line) if by == "line" else (frame.name, "", 0)
        ids.setdefault(key, index)
    return ids
