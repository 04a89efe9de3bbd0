"""`deepcontext mcp`: a real client asks a real server about profiles."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters

from deepcontext.analyzers import Finding, Severity, encode_section, run_analyzers
from deepcontext.analyzers.finding import SECTION
from deepcontext.profiler.format import source_text
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.source_text import FileText
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.cli import app
from deepcontext.ui.evidence import evidence
from deepcontext.ui.mcp.answers import Answers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeProfile

MS = 1_000_000
SOURCE = "import torch\n\n\ndef step(x):\n    x = x.sort()\n    return x\n"


@pytest.fixture
def folder(tmp_path: Path, make_profile: MakeProfile) -> Path:
    """A profile of a program that sorts, a later one that sorts less, and their source."""
    source = tmp_path / "train.py"
    source.write_text(SOURCE, encoding="utf-8")
    os.utime(source, (1, 1))  # before the program ran
    for name, sort_ms in (("before", 600), ("after", 200)):
        make_profile(
            [0, 0, 1, 2, 2],
            [
                Frame(FrameKind.ROOT, "root"),
                Frame(FrameKind.THREAD, "MainThread"),
                Frame(FrameKind.PYTHON, "step", str(source), 5),
                Frame(FrameKind.OPERATOR, "aten::sort"),
                Frame(FrameKind.OPERATOR, "aten::mm"),
            ],
            phases=[Phase.NONE, Phase.NONE, Phase.NONE, Phase.FORWARD, Phase.FORWARD],
            host_time_ns={3: sort_ms * MS, 4: 400 * MS},
            run=RunInfo(
                cwd=str(tmp_path), wall_ns=2000 * MS, start_unix_ns=10**18, script="train.py"
            ),
        ).save(tmp_path / f"{name}.dcprof")
    return tmp_path


def ask(folder: Path, *questions: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the answers; the text of an error as a string."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "deepcontext", "mcp"], cwd=folder
    )

    async def asked() -> list[Any]:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            found: list[Any] = [{tool.name: tool.description for tool in tools}]
            for name, arguments in questions:
                answer = await client.call_tool(name, arguments)
                text = getattr(answer.content[0], "text", "")
                found.append(text if answer.is_error else json.loads(text))
            return found

    return asyncio.run(asyncio.wait_for(asked(), 120))


def test_an_agent_finds_the_costly_line_and_what_a_change_brought(folder: Path) -> None:
    profile = Profile.load(folder / "before.dcprof")
    tools, explained, summary, top, operators, paths, findings, source, diff = ask(
        folder,
        ("explain", {"file": "before.dcprof"}),
        ("summary", {"file": "before.dcprof"}),
        ("top", {"file": "before.dcprof"}),
        ("top", {"file": "before.dcprof", "of": "operators", "limit": 1}),
        ("paths", {"file": "before.dcprof"}),
        ("findings", {"file": "before.dcprof"}),
        ("source", {"file": "before.dcprof", "source_file": "train.py", "first": 4}),
        ("diff", {"before": "before.dcprof", "after": "after.dcprof"}),
    )
    assert tools.keys() == {"explain", "summary", "top", "paths", "findings", "source", "diff"}
    assert all(tools.values())
    assert explained == json.loads(json.dumps(evidence(profile)))
    metric = {"name": "host_time_ns", "unit": "ns"}
    assert (summary["total"], summary["metric"]["name"]) == (1000 * MS, "host_time_ns")
    assert summary["findings"] == [each.title for each in run_analyzers(profile)]
    line = top["rows"][0]
    assert top["metric"] == metric
    assert (line["line"], line["source"]) == (5, "x = x.sort()")
    assert line["inclusive"] == 1000 * MS
    assert [row["name"] for row in operators["rows"]] == ["aten::sort"]
    assert operators["row_count"] == 2
    assert paths["rows"][0]["path"][-1] == "aten::sort"
    assert findings["findings"] == [each.to_dict(profile) for each in run_analyzers(profile)]
    assert [row["line"] for row in source["rows"]] == [4, 5, 6]
    assert source["rows"][1] == {
        "line": 5,
        "text": "x = x.sort()",
        "inclusive": 1000 * MS,
        "exclusive": 1000 * MS,
    }
    assert diff["total"]["difference"] == -400 * MS


def test_a_wrong_question_is_answered_by_what_is_wrong(folder: Path) -> None:
    _, missing, table, metric, secret, right = ask(
        folder,
        ("top", {"file": "no.dcprof"}),
        ("top", {"file": "before.dcprof", "of": "rows"}),
        ("top", {"file": "before.dcprof", "metric": "joules"}),
        ("source", {"file": "before.dcprof", "source_file": "/etc/passwd"}),
        ("top", {"file": "before.dcprof", "limit": -5}),
    )
    assert "no.dcprof" in missing
    assert "tables are operators, modules, lines, scopes, kernels" in table
    assert "no metric 'joules'" in metric
    assert "names no source file '/etc/passwd'" in secret
    assert len(right["rows"]) == 1


def test_a_profile_that_is_written_again_is_read_again(folder: Path) -> None:
    answers = Answers(Profile.load, lambda file: [Profile.load(file)])
    file = str(folder / "before.dcprof")
    assert answers.summary(file)["total"] == 1000 * MS
    (folder / "after.dcprof").replace(file)
    assert answers.summary(file)["total"] == 600 * MS


def test_findings_are_those_that_every_view_shows(folder: Path) -> None:
    file = folder / "before.dcprof"
    profile = Profile.load(file)
    stored = Finding(id="mine", severity=Severity.WARNING, title="stored", nodes=(1,))
    profile.with_section(SECTION, encode_section([stored], profile)).save(file)
    (answer,) = Answers(Profile.load, lambda file: [Profile.load(file)]).findings(str(file))[
        "findings"
    ]
    assert answer["title"] == "stored"
    assert Answers(Profile.load, lambda _: []).summary(str(file))["findings"] == ["stored"]


def test_without_the_package_the_error_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    monkeypatch.delitem(sys.modules, "deepcontext.ui.mcp.server", raising=False)
    assert app.main(["mcp"]) == 4
    assert 'pip install "deepcontext-profiler[mcp]"' in capsys.readouterr().err


def test_lines_of_a_deleted_file_have_the_text_of_the_profile(folder: Path) -> None:
    path = folder / "train.py"
    lines = dict(enumerate(SOURCE.splitlines(), 1))
    path.unlink()
    profile = Profile.load(folder / "before.dcprof")
    held = source_text.encode({str(path): FileText(len(lines), {5: lines[5]})})
    profile.with_section(source_text.SECTION, held).save(folder / "held.dcprof")
    answers = Answers(Profile.load, lambda file: [Profile.load(file)])
    (row,) = answers.source(str(folder / "held.dcprof"), "train.py", 5, 5, None)["rows"]
    assert row["text"] == "x = x.sort()"
