"""An anonymised profile, and what is exported from it, has no name of the user, the machine or the job."""

from __future__ import annotations

import dataclasses
import gzip
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.source_text import FileText
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.model.anonymous import anonymised, path, token
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.trust import CollectorReport
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.ui.cli.app import main
from tests.profiler.importing import traces

if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVATE = ("alice", "acme", "moonshot", "pretrain", "node17", "hunter2", "/data/", "wandb-secret")
FILE = "/home/alice/acme/moonshot/pretrain.py"


def profile(folder: Path) -> Profile:
    """Return a recorded profile, in all but the recording: a trace with the facts of a run."""
    events = [
        traces.python(f"{FILE}(10): train", 0, 5000),
        traces.python(
            "/home/alice/venv/lib/python3.11/site-packages/torch/nn/x.py(3): call", 1, 400
        ),
        traces.python("/tmp/torchinductor_alice/ab/cabxyz.py(3): call", 500, 100),
        traces.python("acme/tools.py(4): helper", 700, 100),
        *traces.training(3),
        traces.span("user_annotation", f"load {FILE} on node17", 4100, 50),
        {"ph": "M", "name": "thread_name", "pid": 100, "tid": 101, "ts": 0}
        | {"args": {"name": "thread 101 (alice-worker)"}},
    ]
    name = folder / "acme-moonshot.json"
    found = load(traces.write(name, events, **traces.NVIDIA))
    run = dataclasses.replace(
        found.run,
        command=("/home/alice/venv/bin/python", FILE, "--key=hunter2", "--data", "/data/acme"),
        script=FILE,
        cwd="/home/alice/acme",
        hostname="node17.acme.example",
        process_name="moonshot",
        exit_reason="exception: FileNotFoundError: /data/acme/x",
        options={"out": "runs/acme.dcprof"},
    )
    trust = dataclasses.replace(
        found.trust,
        collectors=(
            *found.trust.collectors,
            CollectorReport("x", found.trust.collectors[0].status, f"at {FILE}"),
        ),
        notes=(*found.trust.notes, "cannot open /data/acme/x for alice"),
    )
    sections = {
        **found.sections,
        "holders": json.dumps({FILE: [{"file": "acme/tools.py", "line": 3}]}).encode(),
        "later": zlib.compress(json.dumps({"ranks": [{"hostname": "node17"}]}).encode()),
        "strange": b"\x00wandb-secret",
        "source_text": source_text.encode({FILE: FileText(1, {1: "key = 'hunter2'"})}),
    }
    return dataclasses.replace(found, run=run, trust=trust, sections=sections)


def all_bytes(content: bytes) -> Iterator[bytes]:
    """Yield a content, and everything that is compressed in it."""
    yield content
    for start in range(len(content) - 1):
        if content[start] in b"\x78\x1f":
            for window in (15, 31):
                try:
                    unpacked = zlib.decompressobj(window).decompress(content[start:])
                except zlib.error:
                    continue
                if len(unpacked) > 8:
                    yield unpacked


def check(content: bytes) -> None:
    for text in all_bytes(content):
        for name in PRIVATE:
            assert name.encode() not in text, name
    assert token("pretrain").encode() in b"".join(all_bytes(content))


def test_nothing_private_is_left_in_the_file(tmp_path: Path) -> None:
    original = profile(tmp_path)
    content = original.to_bytes()
    left = b"".join(all_bytes(content))
    assert all(name.encode() in left for name in PRIVATE)
    result = anonymised(original)
    check(result.to_bytes())
    assert any("strange" in note for note in result.trust.notes)
    assert source_text.SECTION not in result.sections
    assert any("source_text" in note for note in result.trust.notes)


def test_views_show_the_same_of_it(tmp_path: Path) -> None:
    original = profile(tmp_path)
    result = Profile.from_bytes(anonymised(original).to_bytes())
    assert (result.is_user_code() == original.is_user_code()).all()
    for name, rows in original.metrics.items():
        assert (result.metrics[name].total == rows.total).all()
    before, after = (by_line(each, "host_time_ns") for each in (original, result))
    assert [row.exclusive for row in before.rows] == [row.exclusive for row in after.rows]
    functions = [
        [
            frame.name
            for frame in each.frames
            if frame.kind not in {FrameKind.SCOPE, FrameKind.THREAD}
        ]
        for each in (original, result)
    ]
    assert functions[0] == functions[1]
    assert len(result.exemplars) == len(original.exemplars)
    assert result.run.wall_ns == original.run.wall_ns
    assert result.frames.strings.count(path(FILE)) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/home/alice/v/site-packages/torch/x.py", "/site-packages/torch/x.py"),
        ("/usr/lib/python3.11/json/decoder.py", "/lib/python3.11/json/decoder.py"),
        ("<string>", "<string>"),
        ("a/b.py", f"{token('a')}/{token('b')}.py"),
        ("/tmp/torchinductor_alice/ab/x.py", None),
    ],
)
def test_paths(given: str, expected: str | None) -> None:
    assert is_user_file(path(given)) == is_user_file(given)
    if expected:
        assert path(given) == expected


@pytest.mark.parametrize("form", ["pprof", "speedscope", "collapsed", "perfetto", "chrome-trace"])
def test_commands_write_no_private_names(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    profile(tmp_path).save("train.dcprof")
    assert main(["export", "--anonymise", "--format", form, "train.dcprof", "-o", "out"]) == 0
    content = Path("out").read_bytes()
    check(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    assert main(["import", "--anonymise", "-o", "shared.dcprof", "train.dcprof"]) == 0
    check(Path("shared.dcprof").read_bytes())
    capsys.readouterr()
    assert main(["report", "--full", "shared.dcprof"]) == 0
    assert main(["analyze", "shared.dcprof"]) == 0
    text = capsys.readouterr().out
    assert not [name for name in PRIVATE if name in text]


def test_tables_are_exported_from_anonymised_profiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "train.dcprof"
    profile(tmp_path).save(saved)
    assert main(["export", "--anonymise", "--format", "parquet", str(saved)]) == 2
    assert "deepcontext import --anonymise" in capsys.readouterr().err
