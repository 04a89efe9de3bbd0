"""`--window`: the part of a run that a command speaks of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.cli.app import main
from tests.windows import rows, with_windows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeProfile

MS = 1_000_000
FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.PYTHON, "main", "train.py", 3),
    Frame(FrameKind.OPERATOR, "aten::mm"),
    Frame(FrameKind.PYTHON, "main", "train.py", 9),
    Frame(FrameKind.OPERATOR, "aten::add"),
)


def window(first: int, end: int, step_ns: int, node: int) -> dict[str, Any]:
    """Return a window in which an operator took all the time of the steps."""
    steps = end - first
    values = rows([node], [steps], [steps * step_ns])
    return {
        "first_step": first,
        "end_step": end,
        "begin_ns": first * 10 * MS,
        "end_ns": end * 10 * MS,
        "timed_steps": steps if first else 0,
        "step_total_ns": steps * step_ns if first else 0,
        "step_minimum_ns": step_ns if first else 0,
        "step_maximum_ns": step_ns if first else 0,
        "metrics": [{"name": name, **values} for name in ("host_time_ns", "call_duration_ns")],
    }


@pytest.fixture
def profile(make_profile: MakeProfile, tmp_path: Path) -> str:
    made = make_profile(
        [0, 0, 1, 0, 3],
        FRAMES,
        host_time_ns={2: 90 * MS, 4: 17 * MS},
        call_samples_ns={2: [90 * MS], 4: [MS] * 17},
        step_samples_ns=[MS] * 17,
        run=RunInfo(wall_ns=200 * MS, script="train.py"),
    )
    windows = [window(0, 1, 90 * MS, 2), window(1, 2, 5 * MS, 4), window(2, 10, MS, 4)]
    path = tmp_path / "train.dcprof"
    with_windows(made, windows).save(path)
    return str(path)


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, int], str]:
    """Return the time of each line of the report, and what was said on standard error."""
    assert main(["report", "--json", *arguments]) == 0
    said = capsys.readouterr()
    rows = json.loads(said.out)["lines"]["rows"]
    return {f"{row['file']}:{row['line']}": row["inclusive"] for row in rows}, said.err


def test_a_report_of_a_part_of_the_run(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, profile) == ({"train.py:3": 90 * MS, "train.py:9": 17 * MS}, "")
    found, said = lines(capsys, profile, "--window", "setup")
    assert found == {"train.py:3": 90 * MS}
    assert said == "[deepcontext] what follows is setup: steps 1 to 1, 10.0 ms of 200 ms\n"
    found, said = lines(capsys, profile, "--window", "steady")
    assert found == {"train.py:9": 8 * MS}
    assert "steady: steps 3 to 10, 80.0 ms of 200 ms" in said


def test_warm_up_of_a_number_of_steps(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    found, said = lines(capsys, profile, "--window", "steady", "--warmup", "1")
    assert found == {"train.py:9": 13 * MS}
    assert "steps 2 to 10" in said
    assert lines(capsys, profile, "--window", "warmup", "--warmup", "auto")[1].endswith(
        "warmup: steps 2 to 2, 10.0 ms of 200 ms\n"
    )


def test_steps_are_those_of_whole_windows(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = lines(capsys, profile, "--window", "5-6")
    assert "steady: steps 3 to 10" in said
    _, said = lines(capsys, profile, "--window", "2-3")
    assert "warmup and steady: steps 2 to 10" in said


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["report", "FILE", "--window", "90-99"], "has no window '90-99'; it has setup, warmup"),
        (
            ["report", "FILE", "--window", "9-2"],
            "expected all, setup, warmup, steady, other, end or steps",
        ),
        (["report", "FILE", "--warmup", "-3"], "expected"),
        (["report", "FILE", "--warmup", "some"], "expected auto or a number of steps"),
        (["analyze", "FILE", "--window", "steady", "--save"], "are about whole runs"),
        (["export", "FILE", "--format", "parquet", "--window", "steady"], "holds whole runs"),
    ],
)
def test_what_is_no_part_is_refused(
    profile: str, command: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([profile if word == "FILE" else word for word in command]) == 2
    assert words in capsys.readouterr().err


def test_a_profile_without_windows_says_so(
    make_profile: MakeProfile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.dcprof"
    make_profile([0, 0, 1, 0, 3], FRAMES, host_time_ns={2: 5}).save(path)
    assert main(["report", str(path), "--window", "steady"]) == 2
    assert "has no windows: no steps were found" in capsys.readouterr().err


def test_other_commands_speak_of_the_part(
    profile: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", profile, "--format", "collapsed", "--window", "steady", "-o", "-"]) == 0
    assert capsys.readouterr().out.splitlines() == ["main train.py:9;aten::add 8000000"]
    assert main(["diff", profile, profile, "--window", "steady", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["before"] == MS
    assert main(["analyze", profile, "--window", "steady", "--json"]) == 0
    assert "findings" in json.loads(capsys.readouterr().out)
