"""Every view shows each table of the registry, and each kind of frame has a layer."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.summaries.comparison import compare
from deepcontext.profiler.summaries.groups import groups_by_name
from deepcontext.profiler.summaries.tables import TABLES, Table
from deepcontext.profiler.views.layers import LAYER_OF_KIND, OPTIONAL_LAYERS, Layer
from deepcontext.ui.report import report_to_dict
from deepcontext.ui.web import tables
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[3]


def test_a_table_needs_a_summary_and_one_registry_line(
    make_profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_thread(profile: Any, metric: str, limit: int) -> Any:
        return groups_by_name(profile, FrameKind.THREAD, metric, limit, largest="inclusive")

    monkeypatch.setitem(TABLES, "thread", Table("thread", "threads", FrameKind.THREAD, by_thread))
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.THREAD, "MainThread"),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    made = partial(make_profile, [0, 0, 1], frames)
    before, after = made(host_time_ns={1: 5}), made(host_time_ns={1: 7})
    profiles = OpenProfiles([OpenProfile.of_memory(before, "p")])
    assert [row.name for row in tables.table(profiles, 0, "thread", "host_time_ns").rows] == [
        "MainThread"
    ]
    assert [change.difference for change in compare(before, after).tables["threads"]] == [2]
    report: Any = report_to_dict(before, limit=1)
    assert [row["inclusive"] for row in report["threads"]["rows"]] == [5]


def test_each_kind_of_frame_has_a_layer_and_the_number_of_the_native_core() -> None:
    assert set(LAYER_OF_KIND) == set(FrameKind)
    header = (ROOT / "native/core/frame_kind.h").read_text("utf-8")
    body = header.partition("enum class FrameKind")[2].partition("};")[0]
    native = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper(): int(value)
        for name, value in re.findall(r"\bk(\w+) = (\d+)", body)
        if name != "Link"  # a kind that the core uses internally
    }
    assert native == {kind.name: kind.value for kind in FrameKind}


def test_the_page_has_a_colour_for_each_layer_and_a_switch_for_each_optional_one() -> None:
    colors = (ROOT / "web/src/model/colors.ts").read_text("utf-8")
    palettes = re.findall(r"layers: \{(.*?)\}", colors, re.DOTALL)
    assert len(palettes) == 2
    for palette in palettes:
        assert set(re.findall(r"(\w+): \"", palette)) == {layer.label for layer in Layer}
    address = (ROOT / "web/src/model/address.ts").read_text("utf-8")
    (listed,) = re.findall(r"LAYERS = \[(.*?)\]", address)
    assert re.findall(r'"(\w+)"', listed) == [layer.label for layer in OPTIONAL_LAYERS]
