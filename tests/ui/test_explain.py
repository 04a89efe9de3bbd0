"""The document for a reader who has not seen the program: compact, the same each time, without secrets."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.cli import app
from deepcontext.ui.evidence import MOST_BYTES, evidence, to_markdown
from deepcontext.ui.sections.steps import kept_steps_to_dict
from tests.kept_steps import lane, step, with_steps
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeProfile

PROGRAM = """\
import sys


def slow(count):
    return sum(number * number for number in range(count))


slow(3_000_000)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "plain.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "plain.py", "--token=secret"]
    subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_costliest_line_has_its_source(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["explain", "--json", "plain.dcprof"]) == 0
    document = json.loads(capsys.readouterr().out)
    first = document["lines"][0]
    assert first["line"] == "plain.py:5"
    assert "    8 slow(3_000_000)" in first["source"]
    assert "def slow(count):" in first["source"]
    assert "Python" in document["elapsed_time"]
    assert document["limited_by"]
    assert document["program"]["peak memory"].endswith("MiB")


def test_a_deleted_program_has_its_source(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "plain.py").unlink()
    assert app.main(["explain", "--json", "plain.dcprof"]) == 0
    first = json.loads(capsys.readouterr().out)["lines"][0]
    assert "    8 slow(3_000_000)" in first["source"]
    assert app.main(["report", "plain.dcprof"]) == 0
    assert "return sum(number * number" in capsys.readouterr().out


def test_arguments_are_included_on_request_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["explain", "plain.dcprof"]) == 0
    assert "secret" not in capsys.readouterr().out
    assert app.main(["explain", "--arguments", "plain.dcprof"]) == 0
    assert "secret" in capsys.readouterr().out


@pytest.mark.parametrize("nodes", [1, 300, 20_000])
def test_the_document_is_small_and_the_same_each_time(nodes: int) -> None:
    profile = random_profile(nodes, depth=12) if nodes > 1 else random_profile(1)
    text = json.dumps(evidence(profile))
    assert len(text.encode()) <= MOST_BYTES
    assert text == json.dumps(evidence(dataclasses.replace(profile)))


def test_the_slowest_steps_are_named_with_their_cause(make_profile: MakeProfile) -> None:
    frames = (
        Frame(FrameKind.ROOT, "root"),
        Frame(FrameKind.PYTHON, "main", "/p/train.py", 3),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    )
    run = RunInfo(script="/p/train.py", cwd="/p")
    profile = with_steps(
        make_profile([0, 0, 1], frames, run=run, host_time_ns={2: 1000}),
        step(1, 0, 100, [lane([(2, 0, 60)])], reasons=2),
        step(2, 100, 200, [lane([(2, 0, 60)])], reasons=2),
        step(3, 200, 900, [lane([(2, 0, 660)])], reasons=1),
    )
    assert evidence(profile)["slowest_steps"] == [
        {"step": "3", "time": "700 ns", "more than usual": "600 ns", "where": "train.py:3"}
    ]
    (row, *_) = kept_steps_to_dict(profile, 1)["rows"]
    assert (row["number"], row["reasons"], row["cause"]["own_ns"]) == (3, ["slow"], 660)
    assert (row["cause"]["kind"], row["cause"]["line"]) == ("line", "/p/train.py:3")


def test_what_does_not_fit_is_said(training_folder: Path) -> None:
    profile = Profile.load(training_folder / "troubled.dcprof")
    trust = dataclasses.replace(profile.trust, notes=tuple(f"note {i} " * 30 for i in range(200)))
    document = evidence(dataclasses.replace(profile, trust=trust))
    assert len(json.dumps(document).encode()) <= MOST_BYTES + len('"left_out": "1000 rows"')
    assert document["left_out"].endswith(" rows")


def test_markdown_has_every_part(training_folder: Path) -> None:
    document: dict[str, Any] = evidence(Profile.load(training_folder / "troubled.dcprof"))
    text = to_markdown(document)
    for name in document:
        assert f"## {name.replace('_', ' ')}" in text


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["explain", "missing.dcprof"]) == 2
    assert "missing.dcprof" in capsys.readouterr().err
