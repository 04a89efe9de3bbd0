"""`deepcontext analyze`: output, filters, exit codes, and what it stores in the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext import analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.cli import app
from deepcontext.ui.web.findings import findings
from deepcontext.ui.web.open_profiles import OpenProfiles

if TYPE_CHECKING:
    from deepcontext.ui.web.answers import FindingRow
    from tests.conftest import MakeProfile

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "findings-json.md"
MS = 1_000_000


@pytest.fixture
def sorting(tmp_path: Path, make_profile: MakeProfile) -> Path:
    """A profile with one hotspot."""
    path = tmp_path / "train.dcprof"
    make_profile(
        [0, 0, 1, 2, 2],
        [
            Frame(FrameKind.ROOT, "root"),
            Frame(FrameKind.THREAD, "MainThread"),
            Frame(FrameKind.PYTHON, "train_<step>", "/home/me/train.py", 12),
            Frame(FrameKind.OPERATOR, "aten::sort"),
            Frame(FrameKind.OPERATOR, "aten::mm"),
        ],
        phases=[Phase.NONE, Phase.NONE, Phase.NONE, Phase.FORWARD, Phase.FORWARD],
        host_time_ns={3: 600 * MS, 4: 400 * MS},
        run=RunInfo(cwd="/home/me", wall_ns=2000 * MS),
    ).save(path)
    return path


def test_text_has_location_reason_and_advice(
    sorting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["analyze", str(sorting)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "takes 60% of the time in operators" in text
    assert "train.py:12" in text
    assert "at most 60.0 % of host time" in text
    assert "misleads when" in text


def test_json_is_one_object(sorting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["analyze", "--json", str(sorting)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["format"] == "deepcontext findings"
    (finding,) = content["findings"]
    assert finding["id"] == "hotspot"
    assert finding["gain"]["upper_bound"] == 600 * MS
    assert finding["call_path"][-1] == "aten::sort"
    page = DOCUMENTATION.read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE))
    gain = {f"findings.gain.{key}" for key in finding["gain"]}
    assert {*content, *(f"findings.{key}" for key in finding), *gain} == documented


def test_markdown_escapes_names(sorting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["analyze", "--markdown", str(sorting)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## deepcontext: 1 finding\n")
    assert r"train\_&lt;step>" in text


def test_findings_are_stored_on_request(sorting: Path) -> None:
    sorting.chmod(0o640)
    assert app.main(["analyze", "--save", str(sorting)]) == 0
    content = json.loads(Profile.load(sorting).sections["findings"])
    assert [each["id"] for each in content["findings"]] == ["hotspot"]
    assert sorting.stat().st_mode & 0o777 == 0o640


def test_report_and_page_show_the_same_findings_stored_or_not(
    sorting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown() -> tuple[str, list[FindingRow]]:
        assert app.main(["report", str(sorting)]) == 0
        page = findings(OpenProfiles.open([sorting]), 0)
        return capsys.readouterr().out, page.findings

    before = shown()
    assert "takes 60% of the time in operators" in " ".join(before[0].split())
    assert app.main(["analyze", "--save", str(sorting)]) == 0
    capsys.readouterr()
    assert shown() == before


def test_findings_of_a_plug_in_are_stored_and_shown(
    sorting: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from deepcontext.analyzers import Analyzer, Finding, Severity\n"
        "ANALYZER = Analyzer('mine', 'why?',"
        " lambda profile: [Finding('mine', Severity.INFO, 'a title of mine', ())])\n",
        encoding="utf-8",
    )
    assert app.main(["analyze", "--save", "--plugin", str(plugin), str(sorting)]) == 0
    capsys.readouterr()
    assert app.main(["report", str(sorting)]) == 0
    assert "a title of mine" in capsys.readouterr().out


def test_an_analyzer_that_fails_does_not_prevent_the_report(
    sorting: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = analyzers.Analyzer("broken", "why?", lambda profile: [1 // 0])  # type: ignore[list-item]
    monkeypatch.setattr(analyzers, "installed", lambda: (broken,))
    assert app.main(["report", str(sorting)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "unknown: analyzer 'broken' failed: ZeroDivisionError" in out
    assert "aten::sort" in out


def test_a_subset_of_the_findings_is_not_stored(
    sorting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorting.read_bytes()
    assert app.main(["analyze", "--save", "--only", "hotspot", str(sorting)]) == 2
    assert "leave out --only" in capsys.readouterr().err
    assert sorting.read_bytes() == before


def test_a_write_protected_profile_is_not_saved_to(
    sorting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sorting.chmod(0o444)
    before = sorting.read_bytes()
    assert app.main(["analyze", "--save", str(sorting)]) == 2
    assert "it is write-protected; make it writable, or leave out" in capsys.readouterr().err
    assert (sorting.read_bytes(), sorting.stat().st_mode & 0o777) == (before, 0o444)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--fail-on", "high"], 3),
        (["--fail-on", "info"], 3),
        (["--fail-on", "info", "--only", "copies"], 0),
        (["--fail-on", "info", "--min-gain", "70%"], 0),
        (["--fail-on", "info", "--min-gain", "0.5"], 3),
    ],
)
def test_exit_code_for_continuous_integration(sorting: Path, options: list[str], code: int) -> None:
    assert app.main(["analyze", *options, str(sorting)]) == code


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "nothing"], "unknown analyzer 'nothing'"),
        (["--min-gain", "much"], "expected a share such as 1% or 0.01, found 'much'"),
        (["--min-gain", "200%"], "found '200%'"),
        (["--plugin", "none.py"], "cannot read plug-in 'none.py'"),
    ],
)
def test_impossible_requests_are_refused(
    sorting: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["analyze", *options, str(sorting)]) == 2
    assert message in capsys.readouterr().err


def test_report_lists_findings(sorting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["report", str(sorting)]) == 0
    assert "Findings" in capsys.readouterr().out


def test_a_profile_without_findings_is_reported(
    tmp_path: Path, make_profile: MakeProfile, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.dcprof"
    make_profile([0], [Frame(FrameKind.ROOT, "root")]).save(path)
    assert app.main(["analyze", str(path)]) == 0
    assert "nothing found" in capsys.readouterr().out


def test_without_findings_the_costliest_lines_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    profile = Path(__file__).parents[1] / "real_programs" / "profiles" / "simulations.dcprof"
    assert app.main(["analyze", str(profile)]) == 0
    shown = capsys.readouterr().out
    assert "nothing found" in shown
    assert "> the main thread waits for other processes" in shown
    assert re.search(r"^ +\d.* %  +wait: process  simulations\.py:16$", shown, re.MULTILINE)


def test_a_changed_program_is_compared_with_what_was_found(
    sorting: Path, tmp_path: Path, make_profile: MakeProfile, capsys: pytest.CaptureFixture[str]
) -> None:
    after = tmp_path / "after.dcprof"
    make_profile(
        [0, 0, 1, 2],
        [
            Frame(FrameKind.ROOT, "root"),
            Frame(FrameKind.THREAD, "MainThread"),
            Frame(FrameKind.PYTHON, "train_<step>", "/home/me/train.py", 14),
            Frame(FrameKind.OPERATOR, "aten::mm"),
        ],
        run=RunInfo(cwd="/home/me", wall_ns=1500 * MS),
    ).save(after)
    assert app.main(["analyze", str(sorting), "--verify", str(after)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Gone - " in text
    assert "25.0 % saved" in text
    assert app.main(["analyze", "--json", str(sorting), "--verify", str(after)]) == 0
    content = json.loads(capsys.readouterr().out)
    page = DOCUMENTATION.read_text(encoding="utf-8").partition("## With --verify")[2]
    for key in (*content, *content["savings"][0]):
        assert key in page
    assert content["holds"]


def test_nothing_mended_is_a_failure(sorting: Path) -> None:
    assert app.main(["analyze", str(sorting), "--verify", str(sorting)]) == 3


@pytest.mark.parametrize("more", [["--save"], ["--markdown"], ["--fail-on", "high"]])
def test_verify_only_compares(sorting: Path, more: list[str]) -> None:
    assert app.main(["analyze", str(sorting), "--verify", str(sorting), *more]) == 2


def test_a_missing_program_is_named(sorting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["analyze", str(sorting), "--verify", "absent.py"]) == 2
    assert "'absent.py'" in capsys.readouterr().err
