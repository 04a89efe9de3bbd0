"""`deepcontext export --format perfetto` and `chrome-trace`: kept steps on a time axis."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format import step_source
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.cli import app
from deepcontext.ui.export.perfetto import MESSAGES, TRACE_CLASS
from tests.kept_steps import lane, step, with_steps

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeProfile

# protos/perfetto/trace/perfetto_trace.proto, as in the package perfetto 0.59.1.
PUBLISHED = {
    "Trace": {"packet": 1},
    "TracePacket": {
        "timestamp": 8,
        "trusted_packet_sequence_id": 10,
        "track_event": 11,
        "interned_data": 12,
        "sequence_flags": 13,
        "track_descriptor": 60,
    },
    "TrackEvent": {
        "category_iids": 3,
        "debug_annotations": 4,
        "type": 9,
        "name_iid": 10,
        "track_uuid": 11,
        "double_counter_value": 44,
    },
    "TrackDescriptor": {
        "uuid": 1,
        "name": 2,
        "process": 3,
        "parent_uuid": 5,
        "counter": 8,
        "child_ordering": 11,
        "sibling_order_rank": 12,
    },
    "ProcessDescriptor": {"pid": 1, "process_name": 6},
    "CounterDescriptor": {"unit_name": 6},
    "InternedData": {
        "event_categories": 1,
        "event_names": 2,
        "debug_annotation_names": 3,
        "debug_annotation_string_values": 29,
    },
    "EventCategory": {"iid": 1, "name": 2},
    "EventName": {"iid": 1, "name": 2},
    "DebugAnnotation": {"name_iid": 1, "string_value_iid": 17},
    "DebugAnnotationName": {"iid": 1, "name": 2},
    "InternedString": {"iid": 1, "str": 2},
}
FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.PYTHON, "main", "train.py", 7),
    Frame(FrameKind.MODULE, "model"),
    Frame(FrameKind.OPERATOR, "aten::linear"),
    Frame(FrameKind.OPERATOR, "aten::addmm"),
    Frame(FrameKind.KERNEL, "gemm\udcff"),
)
PARENTS = (0, 0, 1, 2, 3, 4)
SLICES = {
    "kept steps": [("step 7", 1000, 2000), ("step 8", 2000, 2600)],
    # The span that reaches into step 8 is there once.
    "MainThread": [
        ("aten::linear", 1100, 1400),
        ("aten::addmm", 1150, 1400),
        ("aten::linear", 1900, 2100),
        ("aten::linear", 2200, 2500),
    ],
    "GPU 0, stream 3": [("gemm?", 1200, 1500), ("gemm?", 1600, 1700)],
    "GPU 0, stream 3 (2)": [("gemm?", 1450, 1550)],
}


@pytest.fixture
def folder(make_profile: MakeProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    profile = make_profile(
        PARENTS,
        FRAMES,
        phases=[Phase.NONE] * 3 + [Phase.FORWARD] * 3,
        step_samples_ns=[1000, 600],
        run=RunInfo(script="train.py", pid=42, wall_ns=5000),
    )
    kernels = lane([(5, 200, 300), (5, 450, 100), (5, 600, 100)], "gpu cuda", device=0, stream=3)
    first = step(7, 1000, 2000, [lane([(3, 100, 300), (4, 150, 250), (3, 900, 200)]), kernels])
    second = step(8, 2000, 2600, [lane([(3, -100, 200), (3, 200, 300)])], reasons=6)
    history = {"bins": [[600, 1], [1000, 1]], "parts": [[1, 1000, 1000, 1000], [1, 600, 600, 600]]}
    made = with_steps(profile, first, second).with_section(
        step_source.SECTION, json.dumps(history).encode()
    )
    made.save(tmp_path / "train.dcprof")
    profile.save(tmp_path / "plain.dcprof")
    return tmp_path


def exported(folder: Path, kind: str, suffix: str) -> bytes:
    assert app.main(["export", "train.dcprof", "--format", kind]) == 0
    return (folder / f"train{suffix}").read_bytes()


def test_fields_have_the_published_numbers() -> None:
    numbers = {
        message: {name: number for name, (number, _, _) in fields.items()}
        for message, fields in MESSAGES.items()
    }
    assert numbers == PUBLISHED


def test_a_perfetto_trace_has_the_spans_of_each_thread_and_stream(folder: Path) -> None:
    trace: Any = TRACE_CLASS()
    trace.ParseFromString(exported(folder, "perfetto", ".perfetto-trace"))
    descriptors = [each.track_descriptor for each in trace.packet if each.track_descriptor.uuid]
    process, *tracks = descriptors
    assert (process.process.pid, process.process.process_name) == (42, "deepcontext: train.py")
    assert {each.parent_uuid for each in tracks} == {process.uuid}
    assert [each.sibling_order_rank for each in tracks] == list(range(len(tracks)))
    names = {each.uuid: each.name for each in tracks}
    (data,) = (each.interned_data for each in trace.packet if each.interned_data.event_names)
    texts = {each.iid: each.name for each in data.event_names}
    slices: dict[str, list[tuple[str, int, int]]] = {name: [] for name in SLICES}
    opened: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for packet in trace.packet:
        event = packet.track_event
        if event.type == 1:
            slices[names[event.track_uuid]].append((texts[event.name_iid], packet.timestamp, 0))
            opened[event.track_uuid].append(slices[names[event.track_uuid]][-1])
        elif event.type == 2:
            own, last = slices[names[event.track_uuid]], opened[event.track_uuid].pop()
            own[own.index(last)] = (*last[:2], packet.timestamp)
    assert slices == SLICES
    assert not any(opened.values())


def test_spans_say_where_they_come_from(folder: Path) -> None:
    trace: Any = TRACE_CLASS()
    trace.ParseFromString(exported(folder, "perfetto", ".perfetto-trace"))
    (data,) = (each.interned_data for each in trace.packet if each.interned_data.event_names)
    names = {each.iid: each.name for each in data.debug_annotation_names}
    values = {each.iid: each.str.decode() for each in data.debug_annotation_string_values}
    said = [
        {names[each.name_iid]: values[each.string_value_iid] for each in event.debug_annotations}
        for event in (packet.track_event for packet in trace.packet)
        if event.type == 1
    ]
    assert said[0] == {"kept": "among the slowest"}
    assert said[1] == {"kept": "chosen at random, marked by the program"}
    assert said[2] == {"line": "train.py:7 in main", "modules": "model", "phase": "forward"}


def test_step_times_are_counters(folder: Path) -> None:
    trace: Any = TRACE_CLASS()
    trace.ParseFromString(exported(folder, "perfetto", ".perfetto-trace"))
    names = {
        each.track_descriptor.uuid: each.track_descriptor.name
        for each in trace.packet
        if each.track_descriptor.counter.unit_name == "ms"
    }
    points = [
        (names[event.track_uuid], packet.timestamp, event.double_counter_value)
        for packet in trace.packet
        if (event := packet.track_event).type == 4
    ]
    assert ("step time, mean", 0, 1e-3) in points
    assert ("step time, mean", 1000, 6e-4) in points


def test_a_chrome_trace_has_the_same_spans(folder: Path) -> None:
    made = json.loads(exported(folder, "chrome-trace", ".trace.json"))
    events = made["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices: dict[str, list[tuple[str, int, int]]] = {name: [] for name in SLICES}
    for event in events:
        if event["ph"] == "X":
            begin = round(event["ts"] * 1000)
            name = event["name"].encode("utf-8", "replace").decode()
            end = begin + round(event["dur"] * 1000)
            slices[names[event["tid"]]].append((name, begin, end))
    assert slices == SLICES
    assert {event["pid"] for event in events} == {42}
    assert {"C", "M", "X"} == {event["ph"] for event in events}


@pytest.mark.parametrize("kind", ["perfetto", "chrome-trace"])
def test_their_own_files_are_replaced_and_no_others(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    words = ["export", "train.dcprof", "--format", kind, "-o", "out"]
    assert app.main(words) == 0
    assert app.main(words) == 0
    (folder / "out").write_bytes(b"\x0a\x05mine")
    assert app.main(words) == 2
    assert "is not a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["plain.dcprof"], "no step was kept in this profile"),
        (["train.dcprof", "--metric", "host_time_ns"], "holds no chosen metric"),
        (["train.dcprof", "--window", "steady"], "holds whole runs"),
    ],
)
def test_what_cannot_be_exported_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert (folder / "plain.dcprof").is_file()
    assert app.main(["export", "--format", "perfetto", *more]) == 2
    assert words in capsys.readouterr().err
