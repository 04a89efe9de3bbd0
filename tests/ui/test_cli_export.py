"""`deepcontext export`: other viewers' formats hold the same paths and the same sums."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli import app
from deepcontext.ui.export import FORMATS
from deepcontext.ui.export.pprof import PROFILE_CLASS

if TYPE_CHECKING:
    from collections.abc import Callable

# The others have tests of their own (test_export_time_lines.py).
OF_PATHS = [name for name in FORMATS if name not in {"perfetto", "chrome-trace"}]


@pytest.fixture
def in_folder(training_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(training_folder)
    return training_folder


def _pprof(path: Path) -> Any:
    made: Any = PROFILE_CLASS()
    made.ParseFromString(gzip.decompress(path.read_bytes()))
    return made


def _collapsed(path: Path) -> Counter[str]:
    lines: Counter[str] = Counter()
    for line in path.read_text("utf-8").splitlines():
        stack, _, value = line.rpartition(" ")
        assert stack not in lines
        lines[stack] = int(value)
    return lines


def test_pprof_has_every_path_with_its_values_and_phase(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["export", "troubled.dcprof", "--format", "pprof"]) == 0
    assert capsys.readouterr().out.startswith("written to 'troubled.pb.gz', ")
    profile, made = Profile.load("troubled.dcprof"), _pprof(Path("troubled.pb.gz"))
    names = list(made.string_table)
    assert names[0] == ""
    types = [names[each.type] for each in made.sample_type]
    assert types[0] == names[made.default_sample_type] == HOST_TIME_NS.name
    assert {names[each.unit] for each in made.sample_type} == {"nanoseconds"}
    for place, metric in enumerate(types):
        values = sum(sample.value[place] for sample in made.sample)
        assert values == profile.inclusive(metric)[0] > 0
    assert made.time_nanos == profile.run.start_unix_ns
    assert made.duration_nanos == profile.run.wall_ns

    functions = {each.id: each for each in made.function}
    locations = {each.id: each.line[0] for each in made.location}
    found: Counter[tuple[Any, ...]] = Counter()
    for sample in made.sample:
        path = tuple(
            (names[functions[line.function_id].name], line.line)
            for line in (locations[each] for each in reversed(sample.location_id))
        )
        phases = [names[each.str] for each in sample.label if names[each.key] == "phase"]
        found[path, *phases] += sample.value[0]
    expected: Counter[tuple[Any, ...]] = Counter()
    for node, value in enumerate(profile.exclusive(HOST_TIME_NS.name).tolist()):
        frames = profile.path(node)[1:]
        phase = Phase(int(profile.tree.phase[node]))
        labels = () if phase == Phase.NONE else (phase.label,)
        expected[tuple((each.name, each.line) for each in frames), *labels] += value
    assert +found == +expected


def test_speedscope_has_a_view_for_each_metric(in_folder: Path) -> None:
    assert app.main(["export", "troubled.dcprof", "--format", "speedscope"]) == 0
    made = json.loads(Path("troubled.speedscope.json").read_text("utf-8"))
    profile = Profile.load("troubled.dcprof")
    frames = made["shared"]["frames"]
    by_name = {view["name"]: view for view in made["profiles"]}
    assert made["profiles"][made["activeProfileIndex"]] is by_name["host time (host_time_ns)"]
    for metric in ("host_time_ns", "sampled_wait_time_ns", "elapsed_time_ns"):
        (view,) = [view for name, view in by_name.items() if f"({metric})" in name]
        assert view["unit"] == "nanoseconds"
        assert sum(view["weights"]) == view["endValue"] == profile.inclusive(metric)[0]
        assert len(view["samples"]) == len(view["weights"])
        own = profile.exclusive(metric)
        for path, weight, node in zip(
            view["samples"], view["weights"], own.nonzero()[0].tolist(), strict=True
        ):
            assert weight == own[node]
            assert [frames[each]["name"] for each in path] == [
                each.name for each in profile.path(node)[1:]
            ]
    assert {"name": "Net.forward", "file": str(in_folder / "model.py"), "line": 21} in frames


def test_collapsed_adds_up_stacks_with_equal_text(in_folder: Path) -> None:
    assert app.main(["export", "train.dcprof", "--format", "collapsed", "-o", "out"]) == 0
    lines = _collapsed(Path("out"))
    profile = Profile.load("train.dcprof")
    assert lines.total() == profile.inclusive("host_time_ns")[0]
    assert all(stack.startswith("MainThread;<module> train.py:") for stack in lines)
    assert any(stack.endswith(";aten::addmm") for stack in lines)


def test_collapsed_goes_to_a_pipe(in_folder: Path) -> None:
    words = ["export", "train.dcprof", "--format", "collapsed", "-o", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", *words, "--metric", "call_duration_ns.count"],
        capture_output=True,
        check=True,
        cwd=in_folder,
    )
    assert done.stderr == b""
    counts = Profile.load("train.dcprof").counts("call_duration_ns")
    assert sum(int(line.split()[-1]) for line in done.stdout.splitlines()) == counts.sum()


@pytest.fixture
def odd(tmp_path: Path, make_profile: Callable[..., Profile]) -> Path:
    """Return a profile with names that are difficult for formats, and a negative value."""
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "a;b\nc", "/tmp/\udcff.py", 3),
        Frame(FrameKind.OPERATOR, ""),
        Frame(FrameKind.OPERATOR, "aten::mm"),
    ]
    profile = make_profile([0, 0, 1, 1], frames, host_time_ns={1: 7, 2: -5, 3: 11})
    path = tmp_path / "odd.dcprof"
    profile.save(path)
    return path


@pytest.mark.parametrize("name", OF_PATHS)
def test_odd_names_and_negative_values(
    odd: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert app.main(["export", str(odd), "--format", name, "-o", str(out)]) == 0
    if name == "parquet":
        assert capsys.readouterr().err == ""
        sql = (
            f"SELECT path, file, exclusive FROM read_parquet('{out}') WHERE metric = 'host_time_ns'"
        )
        read = duckdb.sql(sql).fetchall()
        assert ("a;b\nc", "/tmp/?.py", 7) in read
        assert ("a;b\nc;", "", -5) in read
        return
    assert capsys.readouterr().err == (
        "note: 1 call paths with a negative host_time_ns are left out: other viewers cannot show "
        "them\n"
    )
    if name == "collapsed":
        assert _collapsed(out) == {"a,b c ?.py:3": 7, "a,b c ?.py:3;aten::mm": 11}
    elif name == "speedscope":
        assert json.loads(out.read_bytes())["profiles"][0]["weights"] == [7, 11]
    else:
        assert [list(each.value) for each in _pprof(out).sample] == [[7], [11]]


@pytest.mark.parametrize("name", OF_PATHS)
def test_an_empty_profile_is_exported_too(in_folder: Path, name: str) -> None:
    assert app.main(["export", "empty.dcprof", "--format", name, "-o", "out"]) == 0
    assert Path("out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.dcprof"], "--format"),
        (["train.dcprof", "--format", "svg"], "'svg'"),
        (["train.dcprof", "--format", "pprof", "--metric", "gpu"], "no measure 'gpu'"),
        (["train.dcprof", "--format", "pprof", "-o", "none/out"], "'none/out': the folder "),
        (["train.dcprof", "--format", "pprof", "-o", "."], "cannot write '.': "),
        (
            ["train.dcprof", "--format", "pprof", "-o", "./train.dcprof"],
            "the file is an input of this command",
        ),
        (["lost.dcprof", "--format", "pprof"], "cannot read 'lost.dcprof'"),
        (
            ["train.dcprof", "--format", "collapsed", "--metric", "a", "--metric", "b"],
            "room for one metric, found 2",
        ),
    ],
)
def test_impossible_exports_give_one_line(
    in_folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("train.dcprof").read_bytes()
    assert app.main(["export", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert Path("train.dcprof").read_bytes() == before
    assert not list(in_folder.glob(".*"))
