"""`deepcontext diff`: equal functions and operators are compared, per step or per run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.cli import app

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[..., str]

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "diff-json.md"
MS = 1_000_000


@pytest.fixture
def write(tmp_path: Path, make_profile: Any) -> Write:
    """Return a function that writes a profile and returns its file."""

    def save(
        name: str,
        times_ms: dict[tuple[str, int, str], int],
        *,
        cwd: str = "/home/me",
        steps: int = 0,
        torch: str = "2.13.0",
    ) -> str:
        """Write a profile of operators with their (function, line, operator) and time."""
        frames, parents, phases = [Frame(FrameKind.ROOT, "")], [0], [Phase.NONE]
        cpu_time, calls = {}, {}
        for (function, line, operator), time_ms in times_ms.items():
            frames += [
                Frame(FrameKind.PYTHON, function, f"{cwd}/train.py", line),
                Frame(FrameKind.OPERATOR, operator),
            ]
            parents += [0, len(frames) - 2]
            phases += [Phase.FORWARD, Phase.FORWARD]
            cpu_time[len(frames) - 1] = time_ms * MS
            calls[len(frames) - 1] = [time_ms * MS // 2] * 2
        run = RunInfo(script="train.py", cwd=cwd, steps=steps, frameworks={"torch": torch})
        profile = make_profile(
            parents,
            frames,
            phases=phases,
            host_time_ns=cpu_time,
            call_samples_ns=calls,
            run=run,
        )
        path = tmp_path / name
        profile.save(path)
        return str(path)

    return save


def diff(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert app.main(["diff", "--json", *words]) == 0
    content = json.loads(capsys.readouterr().out)
    assert isinstance(content, dict)
    return content


def test_a_function_is_matched_after_its_lines_and_folder_have_moved(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write("a", {("f", 10, "aten::mm"): 30, ("g", 20, "aten::add"): 10})
    after = write("b", {("f", 14, "aten::mm"): 30, ("g", 24, "aten::add"): 4}, cwd="/elsewhere")
    content = diff(capsys, before, after)
    (change,) = content["functions"]
    assert (change["name"], change["file"]) == ("g", "train.py")
    assert (change["before"], change["after"]) == (10 * MS, 4 * MS)
    assert change["difference"] == -6 * MS
    assert change["ratio"] == pytest.approx(0.4)
    assert content["total"]["ratio"] == pytest.approx(34 / 40)


def test_steps_are_compared_where_both_profiles_have_them(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write("a", {("f", 1, "aten::mm"): 30}, steps=10)
    after = write("b", {("f", 1, "aten::mm"): 40}, steps=20)
    unmarked = write("c", {("f", 1, "aten::mm"): 40})
    content = diff(capsys, before, after)
    assert (content["per"], content["steps"]) == ("step", [10, 20])
    assert (content["total"]["before"], content["total"]["after"]) == (3 * MS, 2 * MS)
    (phase,) = content["phases"]
    assert (phase["calls_before"], phase["calls_after"]) == (0.2, 0.1)
    assert diff(capsys, before, after, "--per", "run")["total"]["after"] == 40 * MS
    assert diff(capsys, before, unmarked)["per"] == "run"
    assert app.main(["diff", before, unmarked, "--per", "step"]) == 2
    assert "steps of AFTER" in capsys.readouterr().err


def test_new_and_removed_rows_are_shown_largest_change_first(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write("a", {("f", 1, "aten::mm"): 50, ("f", 2, "aten::exp"): 5})
    after = write("b", {("f", 1, "aten::mm"): 50, ("f", 2, "aten::bmm"): 9}, torch="2.14.0")
    assert app.main(["diff", before, after]) == 0
    text = capsys.readouterr().out
    operators = text.partition("Operators")[2].splitlines()[2:4]
    assert [line.split()[-1] for line in operators] == ["aten::bmm", "aten::exp"]
    assert ["new" in operators[0], "gone" in operators[1]] == [True, True]
    assert "! torch: 2.13.0 before, 2.14.0 after" in text
    assert "aten::mm" not in text  # unchanged
    assert app.main(["diff", before, after, "--limit", "1"]) == 0
    assert "Operators (1 of 2)" in capsys.readouterr().out


def test_a_limit_that_is_exceeded_is_exit_code_3(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = write("a", {("f", 1, "x"): 10}), write("b", {("f", 1, "x"): 12})
    assert app.main(["diff", before, after, "--max-ratio", "1.25"]) == 0
    assert app.main(["diff", before, after, "--max-ratio", "1.1"]) == 3
    assert "ratio 1.200, limit 1.100" in capsys.readouterr().err


def test_an_unknown_metric_names_those_that_exist(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write("a", {("f", 1, "x"): 10})
    assert app.main(["diff", before, before, "--metric", "gpu"]) == 2
    assert "host_time_ns" in capsys.readouterr().err


def test_every_key_is_documented_and_every_documented_key_exists(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    content = diff(capsys, write("a", {("f", 1, "x"): 10}), write("b", {("f", 1, "x"): 12}))
    page = DOCUMENTATION.read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(content) | set(content["functions"][0]) == documented


def test_two_empty_profiles_can_be_compared(
    training_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, train = str(training_folder / "empty.dcprof"), str(training_folder / "train.dcprof")
    for pair in ((empty, empty), (empty, train), (train, empty)):
        assert app.main(["diff", *pair]) == 0
        assert "total" in capsys.readouterr().out
    assert app.main(["diff", empty, train, "--max-ratio", "2"]) == 3
