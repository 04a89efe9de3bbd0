"""Files that cannot be read are refused with one sentence, and nothing is written."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import pytest

from deepcontext.errors import ProfileDataError, UserError
from deepcontext.profiler.importing.kineto import event_stream
from deepcontext.profiler.importing.opening import load
from deepcontext.ui.cli.app import main
from tests.profiler.importing import traces

if TYPE_CHECKING:
    from pathlib import Path

OP = traces.op("aten::mul", 10, 5)


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(ProfileDataError) as caught:
        load(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def trace(*events: object, **facts: object) -> bytes:
    return json.dumps({**facts, "traceEvents": [OP, *events]}).encode()


def test_a_truncated_file(tmp_path: Path) -> None:
    whole = trace(*traces.training())
    for size in (len(whole) // 2, len(whole) - 1, len(whole) - 40):
        assert "was cut off" in refusal(tmp_path / "trace.json", whole[:size])


def test_truncated_and_damaged_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(trace(*traces.training()))
    assert "the gzip data ends early" in refusal(tmp_path / "a", packed[:-9])
    damaged = packed[:200] + bytes(20) + packed[220:]
    assert "gzip data" in refusal(tmp_path / "b", damaged)


def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcontext.profiler.importing.source_file._ALWAYS_ALLOWED_BYTES", 1 << 20)
    bomb = gzip.compress(b'{"traceEvents": [' + b" " * (16 << 20))
    assert "expand to more than" in refusal(tmp_path / "bomb.json.gz", bomb)


def test_a_value_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_LARGEST_VALUE_BYTES", 1 << 20)
    monkeypatch.setattr(event_stream, "_BATCH_BYTES", 1 << 16)
    text = trace()[:-2] + b', {"ph": "X", "name": "' + b"x" * (4 << 20) + b'"}]}'
    assert "one value is larger than 1 MiB" in refusal(tmp_path / "trace.json", text)


@pytest.mark.parametrize(
    "head",
    [b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "x": "', b"a;b 1\nc"],
)
def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    monkeypatch.setattr("deepcontext.profiler.importing.whole_file.MOST_BYTES", 2 << 20)
    text = head + b"x" * (4 << 20) + b" 1"
    assert "more than 2 MiB of content" in refusal(tmp_path / "file", text)


def test_deep_nesting(tmp_path: Path) -> None:
    text = trace()[:-2] + b', {"ph": "X", "args": ' + b"[" * 200_000 + b"]" * 200_000 + b"}]}"
    assert "nested too deeply" in refusal(tmp_path / "trace.json", text)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b'{"traceEvents": 5}', "0 events"),
        (b'{"traceEvents": []}', "0 events"),
        (b'{"traceEvents": [1, 2, "x"]}', "damaged JSON"),
        (b'{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "damaged JSON"),
        (
            b'{"weights": [1, 2]}',
            "a trace of torch.profiler, an SQLite export of Nsight Systems",
        ),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not a profile"),
        (gzip.compress(b"hello", mtime=0), "not a profile"),
        (b"print('hello')\n", "not a profile"),
        (trace().decode().encode("utf-16"), "not a profile"),
        (trace().decode().encode("utf-32-be"), "not a profile"),
        (trace()[:-2] + b", }, {}]}", "expected an event"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: bytes, reason: str) -> None:
    refused = refusal(tmp_path / "file", content)
    assert reason in refused or "and none of an operator" in refused


def test_a_fifo_and_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, reason in ((tmp_path / "fifo", "not a regular file"), (tmp_path, "it is a folder")):
        with pytest.raises(UserError, match=reason):
            load(path)


def test_control_characters_nan_and_broken_text_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    odd = (
        b'{"ph": "X", "cat": "cpu_op", "name": "a\x01\nb\xff\\ud800", "pid": 100, "tid": 100, "ts": 30, '
        b'"dur": 5, "args": {"x": NaN, "External id": Infinity}}'
    )
    path.write_bytes(trace()[:-2] + b", " + odd + b"]}")
    profile = load(path)
    assert profile.metrics["call_duration_ns"].count.sum() == 2


def test_times_that_are_none_are_counted(tmp_path: Path) -> None:
    events = [OP, OP | {"dur": -5}, OP | {"ts": 1e300}, OP | {"ts": None}, OP | {"dur": "x"}]
    profile = load(traces.write(tmp_path / "trace.json", events))
    assert profile.metrics["call_duration_ns"].count.sum() == 1
    assert (
        profile.trust.counters["events_without_times"] + profile.trust.counters["events_unknown"]
        == 4
    )
    assert any("no usable times" in note for note in profile.trust.notes)


def test_overlapping_events_repeated_ids_and_many_threads(tmp_path: Path) -> None:
    events = [traces.op("aten::a", n, 10, External_id=1) for n in range(50)]
    events += [traces.kernel("k", 100 + n, 5, 7) for n in range(20)]
    events += [traces.launch(5, 7), traces.launch(6, 7)]
    events += [traces.op("aten::b", n, 1, tid=1000 + n) for n in range(3000)]
    events.append({"ph": "Z", "cat": "new", "ts": 1})
    profile = load(traces.write(tmp_path / "trace.json", events))
    assert profile.metrics["call_duration_ns"].count.sum() == 3050
    assert profile.metrics["launch_count"].total.sum() == 20
    assert profile.trust.counters["events_unknown"] == 1
    assert len(profile.lanes(profile.exemplars[0])) == 1000 + 1


def test_more_threads_than_any_program_has(tmp_path: Path) -> None:
    events = [OP | {"tid": n} for n in range(100_001)]
    refused = refusal(tmp_path / "trace.json", json.dumps(events).encode())
    assert "events of more than 100,000 threads" in refused


@pytest.mark.parametrize("command", ["report", "analyze", "explain", "import", "view"])
def test_commands_end_with_code_5_and_write_nothing(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.json").write_bytes(trace()[:-20])
    assert main([command, "trace.json"]) == 5
    assert capsys.readouterr().err.count("\n") == 1
    assert os.listdir(tmp_path) == ["trace.json"]  # noqa: PTH208


def test_an_import_replaces_profiles_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    traces.write(tmp_path / "trace.json.gz", traces.training())
    assert main(["import", "trace.json.gz"]) == 0
    assert "written to 'trace.dcprof'" in capsys.readouterr().out
    assert main(["import", "trace.json.gz"]) == 0  # over an older profile
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["import", "trace.json.gz", "-o", "notes.txt"]) == 2
    assert (tmp_path / "notes.txt").read_text() == "mine"
    capsys.readouterr()
    for words in (
        ["report", "trace.json.gz"],
        ["diff", "trace.json.gz", "trace.dcprof"],
        ["query", "select 1", "trace.json.gz"],
    ):
        assert main(words) == 0, capsys.readouterr().err


def test_events_that_are_cut_anywhere_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = traces.write(
        tmp_path / "trace.json", traces.training(), note={"traceEvents": [{"ph": "X"}]}
    )
    whole = known(event_stream.EventStream([path.read_bytes()], path))
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(event_stream, "_BATCH_BYTES", size)
        text = path.read_bytes()
        stream = event_stream.EventStream(
            [text[n : n + size] for n in range(0, len(text), size)], path
        )
        assert known(stream) == whole
        assert stream.facts["schemaVersion"] == 1
    assert len(whole) == len(traces.training())


def known(stream: event_stream.EventStream) -> list[tuple[object, ...]]:
    return [(each.ph, each.name, each.ts, each.dur) for batch in stream for each in batch]
