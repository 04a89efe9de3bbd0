"""A tree of Proton becomes a profile node by node."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.importing.opening import load
from deepcontext.ui.cli.app import main

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile


def node(name: str, *children: object, **metrics: object) -> dict[str, Any]:
    return {
        "frame": {"name": name, "type": "function"},
        "metrics": {key.replace("_ns", " (ns)"): value for key, value in metrics.items()},
        "children": list(children),
    }


def kernel(name: str, kind: str = "CUDA", **metrics: object) -> dict[str, Any]:
    return node(name, device_id="0", device_type=kind, **metrics)


TREE = [
    node(
        "ROOT",
        node(
            "/home/app/train.py:main@12",
            node("loss", kernel("add", time_ns=300, count=3, bytes=64.0), cpu_time_ns=900),
            kernel("add", time_ns=100, count=1, flops16=1e6),
        ),
        count=0,
    ),
    {"CUDA": {"0": {"arch": "90"}}},
]


def sums(profile: Profile, metric: str) -> dict[str, int]:
    rows = profile.metrics[metric]
    return {
        " > ".join(frame.name for frame in profile.path(at)[1:]): total
        for at, total in zip(rows.node.tolist(), rows.total.tolist(), strict=True)
    }


@pytest.mark.parametrize("encode", [lambda tree: json.dumps(tree).encode(), msgspec.msgpack.encode])
def test_every_node_keeps_its_place_and_values(tmp_path: Path, encode: Any) -> None:
    (tmp_path / "a").write_bytes(encode(TREE))
    profile = load(tmp_path / "a")
    assert sums(profile, "gpu_time_ns") == {"main > loss > add": 300, "main > add": 100}
    assert sums(profile, "launch_count") == {"main > loss > add": 3, "main > add": 1}
    assert sums(profile, "bytes_moved") == {"main > loss > add": 64}
    assert sums(profile, "flops") == {"main > add": 1_000_000}
    assert sums(profile, "call_duration_ns") == {"main > loss": 900}
    frames = {frame.name: frame for frame in profile.frames}
    assert frames["main"].kind is FrameKind.PYTHON
    assert (frames["main"].file, frames["main"].line) == ("/home/app/train.py", 12)
    assert frames["loss"].kind is FrameKind.SCOPE
    assert frames["add"].kind is FrameKind.KERNEL
    assert profile.trust.counters["nodes_read"] == 4


def test_a_deep_tree(tmp_path: Path) -> None:
    inner = kernel("k", time_ns=1)
    for n in range(300):
        inner = node(f"s{n}", inner)
    (tmp_path / "a").write_text(json.dumps([node("ROOT", inner)]))
    assert load(tmp_path / "a").tree.depth.max() == 301


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(TREE)[:-20],
        '[{"frame": {"name": "ROOT"}, "children": []}]',
        '[{"frame": 5, "children": 7, "metrics": []}, 3]',
        '[{"children": ' * 100_000 + '"frame"',
    ],
)
def test_damaged_trees(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").write_text(content)
    with pytest.raises(ProfileDataError) as caught:
        load(tmp_path / "a")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "a") in str(caught.value)


def test_values_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    odd = kernel("k", time_ns="x", count=True, bytes=-1, util=3)
    (tmp_path / "a").write_text(json.dumps([node("ROOT", odd, kernel("j", time_ns=5))]))
    profile = load(tmp_path / "a")
    assert sums(profile, "gpu_time_ns") == {"j": 5}
    assert profile.trust.counters["metrics_unknown"] == 3


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "vendor"), [("cuda", "nvidia"), ("hip", "amd"), ("triton", "nvidia")]
)
def test_real_trees(name: str, vendor: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(os.environ.get("DEEPCONTEXT_TRACES", "/nonexistent")) / f"proton_{name}.json"
    if not path.exists():
        pytest.skip("set DEEPCONTEXT_TRACES to a folder with proton_*.json")
    text = path.read_text()
    expected = sum(
        int(part.partition(",")[0].split("}")[0]) for part in text.split('"time (ns)": ')[1:]
    )
    profile = load(path)
    assert sum(sums(profile, "gpu_time_ns").values()) == expected
    assert vendor in {each.name for each in profile.trust.collectors}
    assert main(["report", str(path)]) == 0
    wrong = "NVIDIA" if vendor == "amd" else "AMD"
    assert wrong not in capsys.readouterr().out
