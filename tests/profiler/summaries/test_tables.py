"""Every view shows each table of the registry, and each kind of frame has a layer."""

from __future__ import annotations

import re
from pathlib import Path

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.views.layers import LAYER_OF_KIND, OPTIONAL_LAYERS, Layer

ROOT = Path(__file__).parents[3]


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
