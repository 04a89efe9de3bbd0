"""A table as data: rows of JSON's types, and columns with the unit of their values.

`text_of` is the only function that makes text of a value by its unit. Does not know a profile.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.model.place import Place
from deepcontext.ui.format import (
    UNICODE,
    Elide,
    Glyphs,
    format_bandwidth,
    format_bytes,
    format_count,
    format_flops,
    format_mean_sd,
    format_ns,
    format_rate,
    format_share,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Row = Mapping[str, Any]


class Unit(enum.Enum):
    """What a value is: a sum over the steps shown, a value of one thing, or text."""

    NS = enum.auto()
    BYTES = enum.auto()
    COUNT = enum.auto()
    FLOP = enum.auto()
    METRIC = enum.auto()  # a sum in the unit of the metric that the report is ordered by
    ONE_NS = enum.auto()  # from here on not divided by the steps
    ONE_BYTES = enum.auto()
    ONE_COUNT = enum.auto()
    SHARE = enum.auto()
    FLOP_RATE = enum.auto()
    BANDWIDTH = enum.auto()  # in powers of 1000, as vendors state it
    RATE = enum.auto()  # bytes a second, in powers of 1024
    MEAN = enum.auto()  # a `Spread` of ns, as a mapping
    RANGE = enum.auto()  # the same
    PHASES = enum.auto()  # values by name of the phase
    HISTORY = enum.auto()  # parts of 1, in the order of time
    CHANGE = enum.auto()  # difference of two values of the metric, with its sign
    NUMBER = enum.auto()  # text of a column that is aligned to the right
    NAME = enum.auto()
    PATH = enum.auto()
    TEXT = enum.auto()
    SOURCE = enum.auto()  # the text of the line that the row is about

    @property
    def is_sum(self) -> bool:
        """Whether values are divided by the steps."""
        return self.value <= Unit.METRIC.value

    @property
    def elide(self) -> Elide | None:
        """Where texts are shortened, None for units whose texts are not."""
        return _ELIDED.get(self)


_ELIDED: Final = {
    Unit.NAME: Elide.MIDDLE,
    Unit.PATH: Elide.START,
    Unit.TEXT: Elide.END,
    Unit.SOURCE: Elide.END,
}
_NOTHING: Final = frozenset({"", "-"})
_OTHER: Final = Phase.OTHER.label
_WRITERS: Final[dict[Unit, Callable[[float], str]]] = {
    Unit.NS: format_ns,
    Unit.BYTES: format_bytes,
    Unit.COUNT: format_count,
    Unit.FLOP: format_flops,
    Unit.ONE_NS: format_ns,
    Unit.ONE_BYTES: format_bytes,
    Unit.ONE_COUNT: format_count,
    Unit.FLOP_RATE: lambda rate: f"{format_flops(rate)}/s",
    Unit.BANDWIDTH: format_bandwidth,
    Unit.RATE: format_rate,
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        value: key of the value in a row, or what computes it from the row.
        heading: what stands above it.
        unit: of its values.
        rank: order in which a narrow terminal drops columns, the highest first; 0 is never dropped.
    """

    value: str | Callable[[Row], Any]
    heading: str
    unit: Unit
    rank: int = 0

    def of(self, row: Row) -> Any:
        """Return the value of a row."""
        return row[self.value] if isinstance(self.value, str) else self.value(row)


@dataclass(frozen=True, slots=True)
class Table:
    """One answer.

    Attributes:
        title: heading, "" for a part of the section above it.
        note: what terms of the heading and the columns mean.
        columns: what is shown of the rows.
        rows: the most important first. They may have more keys than columns show.
        row_count: number of rows, those that are left out included; None if there are no others.
        above: a sentence above the rows.
        below: a sentence below the rows.
        steps: what sums are divided by for a reader; rows have the sums.
        metric_unit: what `Unit.METRIC` is.
        of: what the heading adds behind the number of rows, as ", of the whole run".
    """

    title: str
    note: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    row_count: int | None = None
    above: str = ""
    below: str = ""
    steps: int = 1
    metric_unit: str = ""
    of: str = ""

    @property
    def count(self) -> int:
        """Number of rows, those that are left out included."""
        return len(self.rows) if self.row_count is None else self.row_count

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that are not empty in all rows; a bar of one phase says nothing, either."""
        return tuple(column for column in self.columns if not self._is_empty(column))

    def _is_empty(self, column: Column) -> bool:
        values = (column.of(row) for row in self.rows)
        if column.unit is Unit.PHASES:
            others = (part for each in values for name, part in each.items() if name != _OTHER)
            return not any(others)
        if column.unit is Unit.HISTORY:
            return not any(map(any, values))
        return all(self.text_of(value, column.unit) in _NOTHING for value in values)

    def to_json(self) -> dict[str, object]:
        """Return the rows and their number."""
        return {"row_count": self.count, "rows": list(self.rows)}

    def texts(self, most_rank: int = 0) -> list[dict[str, str]]:
        """Return the rows as texts by heading, of columns up to a rank, without empty values."""
        columns = [
            each
            for each in self.shown
            if each.rank <= most_rank and each.unit not in {Unit.PHASES, Unit.HISTORY}
        ]
        rows = (
            {each.heading: self.text_of(each.of(row), each.unit) for each in columns}
            for row in self.rows
        )
        return [{key: text for key, text in row.items() if text not in _NOTHING} for row in rows]

    def text_of(self, value: Any, unit: Unit, glyphs: Glyphs = UNICODE) -> str:
        """Return a value in a unit as text, a mean of a step where it is a sum."""
        value = value / self.steps if value and unit.is_sum else value
        if unit in {Unit.METRIC, Unit.CHANGE}:
            sign = "+" if unit is Unit.CHANGE and value > 0 else ""
            return sign + format_value(value, self.metric_unit)
        return text_of(value, unit, glyphs)


def text_of(value: Any, unit: Unit, glyphs: Glyphs = UNICODE) -> str:
    """Return a value as text; "-" for one that is not known, and for nothing."""
    if unit.value >= Unit.NUMBER.value or value == "":  # "" of a number: the row above goes on
        return "" if value is None else str(value)
    if unit is Unit.SHARE:
        return format_share(value)
    if unit in {Unit.MEAN, Unit.RANGE}:
        return _spread(value, unit, glyphs)
    return _WRITERS[unit](value) if value else "-"


def share(key: str, whole: float, rank: int = 0) -> Column:
    """Return the column of a value's share of the whole; "-" for no value."""
    return Column(
        lambda row: row[key] / whole if whole and row[key] else None, "share", Unit.SHARE, rank
    )


def picked(value: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes in JSON's types: `names`, and for each key of `renamed` the attribute it names."""
    found = {name: plain(getattr(value, name)) for name in names}
    return found | {key: plain(getattr(value, name)) for key, name in renamed.items()}


def plain(value: Any) -> Any:
    """Return dataclasses, mappings and tuples as JSON's types; NaN, infinity and no line as None."""
    if type(value) is Place and not value.file:
        return None
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {getattr(key, "label", str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _spread(value: Row | None, unit: Unit, glyphs: Glyphs) -> str:
    if value is None:
        return "-"
    if unit is Unit.MEAN:
        return format_mean_sd(value["mean"], value["sd"], glyphs)
    least, most = value["minimum"], value["maximum"]
    return "-" if least is None or most is None else f"{format_ns(least)} to {format_ns(most)}"
