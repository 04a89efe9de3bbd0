"""Tables as data, and what a terminal shows of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from deepcontext.profiler.summaries.account import Cause, Place
from deepcontext.profiler.summaries.native_callees import Callee
from deepcontext.ui.account_texts import causes_text
from deepcontext.ui.report.sections import SECTIONS
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.report.text_layout import TextLayout
from deepcontext.ui.sections.table import Column, Table, Unit, picked, plain, share

if TYPE_CHECKING:
    from collections.abc import Sequence


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]], **more: Any) -> list[str]:
    file = io.StringIO()
    layout = TextLayout(Console(file=file, width=60))
    print_table(layout, Table("Title", "", columns, rows, **more))
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (Unit.NS, 6_000_000, "2.00 ms"),
        (Unit.NS, 0, "-"),
        (Unit.NS, None, "-"),
        (Unit.NS, "", ""),
        (Unit.ONE_NS, 6_000_000, "6.00 ms"),
        (Unit.COUNT, 9, "3"),
        (Unit.ONE_COUNT, 9, "9"),
        (Unit.BYTES, 3072, "1.00 KiB"),
        (Unit.METRIC, 0, "0"),
        (Unit.METRIC, 3072, "1.00 KiB"),
        (Unit.SHARE, 0.5, "50.0 %"),
        (Unit.SHARE, 0.0, "0.0 %"),
        (Unit.FLOP_RATE, 2e9, "2.00 GFLOP/s"),
        (Unit.NUMBER, None, ""),
    ],
)
def test_sums_are_divided_by_the_steps_and_nothing_else_is(
    unit: Unit, value: Any, text: str
) -> None:
    assert Table("", "", (), (), steps=3, metric_unit="bytes").text_of(value, unit) == text


def test_a_column_that_is_empty_in_all_rows_is_not_shown() -> None:
    columns = (
        Column("time_ns", "time", Unit.NS),
        Column("wait_ns", "waiting", Unit.NS),
        Column("phases", "phases", Unit.PHASES),
        Column("name", "name", Unit.NAME),
    )
    rows = [{"time_ns": 0, "wait_ns": 0, "phases": {"other": 1, "forward": 0}, "name": "a"}]
    assert _table(columns, rows) == ["", "Title", "  name", "  a"]
    rows += [{"time_ns": 5, "wait_ns": 0, "phases": {"other": 1, "forward": 1}, "name": "b"}]
    shown = _table(columns, rows, row_count=9)
    assert shown[1:3] == ["Title (2 of 9)", "  time    phases  name"]
    assert shown[3].split()[0] == "-"


def test_a_table_without_rows_prints_nothing_but_its_sentence() -> None:
    assert _table((Column("name", "name", Unit.NAME),), ()) == []
    assert _table((), (), above="not known") == ["", "Title", "  not known"]


def test_a_share_of_nothing_is_not_known() -> None:
    assert share("n", 4).of({"n": 1}) == 0.25
    assert share("n", 0).of({"n": 1}) is None
    assert share("n", 4).of({"n": 0}) is None


def test_a_long_native_name_leaves_room_for_the_other_columns() -> None:
    callee = Callee("pybind11::initialize<" + "torch::jit::" * 40 + "::_FUN", 8, ())
    place = Place(None, 8, ((Cause.NATIVE, 8),), 0, (callee,))
    text = causes_text(place)
    assert len(text) == 32
    assert text.endswith("::_FUN")


def test_attributes_are_picked_as_json() -> None:
    assert picked(1 + 2j, "real", part="imag") == {"real": 1.0, "part": 2.0}
    assert plain({"a": (float("nan"), 1)}) == {"a": [None, 1]}


def test_each_section_has_a_name_and_a_rank_of_its_own() -> None:
    assert sorted(each.rank for each in SECTIONS) == list(range(1, len(SECTIONS) + 1))
    assert len({each.name for each in SECTIONS}) == len(SECTIONS)
