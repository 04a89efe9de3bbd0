"""The text report fits the width of its terminal, and hides nothing silently."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.pid_space import pid_space
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.trust import CollectorReport, TrustReport
from deepcontext.ui.report import render_report, render_summary
from deepcontext.ui.report.paths import exclusive_paths, inclusive_paths

if TYPE_CHECKING:
    from pathlib import Path

METRIC = "host_time_ns"
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]")


def _text(profile: Profile, width: int = 100, encoding: str = "utf-8", **options: Any) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    options.setdefault("full", True)
    render_report(profile, console=Console(file=file, width=width), **options)
    file.seek(0)
    return file.read()


NAMES = st.text(st.characters(codec="utf-8"), max_size=30)
FRAMES = st.builds(
    Frame,
    st.sampled_from([kind for kind in FrameKind if kind is not FrameKind.ROOT]),
    NAMES,
    st.one_of(st.just(""), st.just("/home/me/" + "deep/" * 9 + "train.py"), NAMES),
    st.integers(0, 99_999),
)


@st.composite
def profiles(draw: st.DrawFn, make_profile: Any) -> Profile:
    count = draw(st.integers(1, 30))
    parents = [0] + [draw(st.integers(max(0, node - 2), node - 1)) for node in range(1, count)]
    frames = [Frame(FrameKind.ROOT, ""), *(draw(FRAMES) for _ in range(1, count))]
    values = st.integers(0, 10**13)
    profile: Profile = make_profile(
        parents,
        frames,
        phases=[draw(st.sampled_from(Phase)) for _ in range(count)],
        host_time_ns=draw(st.dictionaries(st.integers(0, count - 1), values)),
        call_samples_ns={node: [1, 10 ** draw(st.integers(1, 12))] for node in range(1, count)},
        run=RunInfo(command=(draw(NAMES), draw(NAMES)), wall_ns=draw(values)),
        trust=TrustReport(notes=(draw(NAMES),)),
    )
    return profile


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [60, 80, 100, 160, 200])
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_no_line_is_wider_than_the_terminal(
    make_profile: Any, width: int, encoding: str, data: st.DataObject
) -> None:
    text = _text(data.draw(profiles(make_profile)), width, encoding)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    if encoding == "ascii":
        assert text.isascii()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_path_rows_and_the_rest_are_the_whole_tree(make_profile: Any, data: st.DataObject) -> None:
    profile = data.draw(profiles(make_profile))
    exclusive, inclusive = profile.exclusive(METRIC), profile.inclusive(METRIC)
    for tree in (inclusive_paths(profile, METRIC, 12), exclusive_paths(profile, METRIC, 5)):
        shown = [node for row in tree.rows for node in row.nodes]
        assert len(shown) == len(set(shown))
        rest = set(range(1, len(profile.tree))) - set(shown)
        costly = [node for node in rest if exclusive[node]]
        if tree.rows:
            assert tree.hidden_nodes == len(costly)
            assert tree.hidden_value == sum(int(exclusive[node]) for node in costly)
        for row in tree.rows:
            for above, below in zip(row.nodes, row.nodes[1:], strict=False):
                assert profile.tree.parent[below] == above
                assert inclusive[above] >= inclusive[below]


def test_largest_self_times_are_all_shown(make_profile: Any) -> None:
    operators = [Frame(FrameKind.OPERATOR, f"op{index}") for index in range(40)]
    frames = [Frame(FrameKind.ROOT, ""), *operators]
    profile = make_profile([0] * 41, frames, host_time_ns={n: 1000 - n for n in range(1, 41)})
    tree = exclusive_paths(profile, METRIC, 7)
    assert [row.nodes for row in tree.rows] == [(node,) for node in range(1, 8)]
    assert tree.hidden_nodes == 33


@pytest.mark.parametrize("depth", [60, 30_000])
def test_deep_single_paths_become_one_row_with_a_count(make_profile: Any, depth: int) -> None:
    python = [Frame(FrameKind.PYTHON, f"f{line}", "/me/a.py", line) for line in range(1, depth + 1)]
    frames = [Frame(FrameKind.ROOT, ""), *python, Frame(FrameKind.OPERATOR, "aten::mm")]
    profile = make_profile([0, *range(depth + 1)], frames, host_time_ns={depth + 1: 10**9})
    section = _text(profile).partition("Call paths")[2]
    (row,) = [line for line in section.splitlines() if "aten::mm" in line]
    match = re.search(r"f1 a.py:1 > … (\d+) more > (.*)$", row)
    assert match is not None
    assert int(match[1]) + len(match[2].split(" > ")) == depth


def test_frames_of_libraries_are_left_out_of_paths(make_profile: Any) -> None:
    library = "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py"
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "main", "/me/a.py", 3),
        Frame(FrameKind.PYTHON, "Linear.forward", library, 134),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    text = _text(make_profile([0, 0, 1, 2], frames, host_time_ns={3: 10**9}))
    assert "main a.py:3 > aten::mm" in text
    assert "Linear.forward" not in text
    assert "libraries are not named" in text


def test_names_cannot_control_the_terminal(make_profile: Any) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.OPERATOR, "evil\x1b]0;x\x07\n[red]a[/red]"),
    ]
    text = _text(make_profile([0, 0], frames, host_time_ns={1: 5}), width=160)
    assert "evil\\x1b]0;x\\x07\\n[red]a[/red]" in text
    assert "\x1b" not in text


def test_colours_on_a_terminal_only_and_not_with_no_color(
    make_profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.OPERATOR, "aten::mm")]
    profile = make_profile([0, 0], frames, host_time_ns={1: 5}, phases=[Phase.NONE, Phase.FORWARD])
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert not COLOUR.search(_text(profile))
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert COLOUR.search(_text(profile))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOUR.search(_text(profile))


def test_hidden_columns_are_named(training_folder: Path) -> None:
    profile = Profile.load(training_folder / "train.dcprof")
    assert "not shown at this width" not in _text(profile, width=160)
    narrow = _text(profile, width=60)
    assert re.search(r"not shown at this width: .*range", narrow)
    assert ", ;" not in narrow


def test_warnings_come_before_the_numbers(training_folder: Path) -> None:
    text = _text(Profile.load(training_folder / "troubled.dcprof"))
    warning = text.index("! 12 backward operators were not found")
    assert warning < text.index("Phases")
    assert text.index("libcupti.so was not found") < text.index("Phases")


@pytest.mark.parametrize(
    ("status", "reason", "says"),
    [
        (Status.UNAVAILABLE, "unknown layout", ["! torch: unavailable", "deepcontext doctor"]),
        (Status.RAN, "", ["The program imported torch, but called no operator"]),
        (Status.OFF, "the program did not import torch", ["There is nothing to show"]),
    ],
)
def test_a_program_without_operators_gets_the_likely_cause(
    make_profile: Any, status: Status, reason: str, says: list[str]
) -> None:
    trust = TrustReport((CollectorReport("torch", status, reason),))
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")], trust=trust)
    for text in (_text(profile), _summary(profile)):
        for words in says:
            assert words in " ".join(text.split())
        assert "Phases" not in text


def test_collectors_that_were_not_needed_are_in_the_trust_report_only(make_profile: Any) -> None:
    reason = "no driver on this machine; docker run --gpus all"
    trust = TrustReport((CollectorReport("nvidia", Status.OFF, reason),))
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")], trust=trust)
    assert "docker" not in _summary(profile)
    text = _text(profile)
    assert text.count("docker") == 1
    assert text.index("Trust") < text.index("docker")


def test_an_empty_report_names_its_cause(make_profile: Any) -> None:
    def told(status: Status, wall_ns: int) -> str:
        trust = TrustReport((CollectorReport("cpu sampling", status, "x"),))
        run = RunInfo(script="x.py", wall_ns=wall_ns)
        profile = make_profile([0], [Frame(FrameKind.ROOT, "")], trust=trust, run=run)
        return " ".join(_summary(profile).split())

    assert "--cpu-rate 0" in told(Status.OFF, 10**9)
    assert "! cpu sampling: unavailable, x" in told(Status.UNAVAILABLE, 10**9)
    assert "ended before the first sample" in told(Status.RAN, 10**6)
    assert "ended" not in told(Status.RAN, 10**10)


@pytest.mark.parametrize("script", ["-m torch.distributed.run", "/opt/venv/bin/torchrun"])
def test_a_launcher_without_operators_says_where_deepcontext_belongs(
    make_profile: Any, script: str
) -> None:
    trust = TrustReport((CollectorReport("torch", Status.RAN, ""),))
    run = RunInfo(script=script)
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")], trust=trust, run=run)
    text = " ".join(_text(profile).split())
    assert "torchrun --nproc-per-node N -m deepcontext profile train.py" in text


def _ended_child() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


@pytest.mark.parametrize(
    ("process", "said"),
    [
        (RunInfo(), "This is a snapshot, written while the program ran. If the program has ended,"),
        (RunInfo(pid=os.getpid(), pid_space=pid_space()), "! The program still runs,"),
        (RunInfo(pid=_ended_child(), pid_space=pid_space()), "! The program ended without an exit"),
    ],
    ids=["of another machine", "runs", "ended"],
)
def test_a_snapshot_without_operators_says_what_is_known_of_the_program(
    make_profile: Any, process: RunInfo, said: str
) -> None:
    trust = TrustReport((CollectorReport("torch", Status.RAN, ""),))
    run = dataclasses.replace(
        process, script="train.py", exit_reason="snapshot", start_unix_ns=time.time_ns()
    )
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")], trust=trust, run=run)
    text = " ".join(_text(profile).split())
    assert said in text
    assert "--snapshot-interval" in text


def _summary(profile: Profile) -> str:
    file = io.StringIO()
    render_summary(profile, console=Console(file=file, width=100), path=None)
    return file.getvalue()


@pytest.mark.parametrize("width", [60, 100])
def test_summary_is_short_and_ends_with_commands_to_type(training_folder: Path, width: int) -> None:
    profile = Profile.load(training_folder / "train.dcprof")
    file = io.StringIO()
    render_summary(profile, console=Console(file=file, width=width), path="my run.dcprof")
    lines = file.getvalue().splitlines()
    assert len(lines) <= 14
    assert lines[-2:] == [
        "next: deepcontext report 'my run.dcprof'",
        "      deepcontext report --json 'my run.dcprof'",
    ]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("python", "-u", "/job/train.py", "--epochs"), "train.py"),
        (("python", "-X", "utf8", "train.py"), "train.py"),
        (("python", "-m", "package.train"), "-m package.train"),
        (("python", "-c", "print(1)", "x.py"), "the program"),
        (("python",), "the program"),
    ],
)
def test_a_process_that_another_one_started_is_named_by_its_command(
    command: tuple[str, ...], shown: str
) -> None:
    from deepcontext.ui.report.text import _followed_program

    assert _followed_program(command) == shown
