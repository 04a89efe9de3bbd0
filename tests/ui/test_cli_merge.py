"""`deepcontext merge`: the ranks of a job in one profile, and profiles that form no job."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import UserError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.trust import CollectorReport, TrustReport
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.summaries.collectives import CollectiveTime
from deepcontext.profiler.summaries.communication import Exchange
from deepcontext.profiler.summaries.late_ranks import LateRanks, RankDelays
from deepcontext.ui.cli import app
from tests.ui.conftest import STARTED_UNIX_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeRank = Callable[..., Profile]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "report-json.md"
MS = 1_000_000


@pytest.fixture
def make_rank(training_folder: Path) -> MakeRank:
    """Return a function that makes the profile of one rank, `factor` times as slow."""

    def make(rank: int, ranks: int = 2, *, name: str = "train", factor: int = 1) -> Profile:
        profile = Profile.load(training_folder / f"{name}.dcprof")
        run = dataclasses.replace(profile.run, rank=rank, ranks=ranks)
        rows = {
            key: dataclasses.replace(value, total=value.total * factor)
            for key, value in profile.stored_metrics().items()
        }
        return dataclasses.replace(profile, run=run, metrics=rows)

    return make


def _paths(profile: Profile) -> dict[tuple[object, ...], dict[str, Any]]:
    """Return the values at each path, by metric, phase and frames."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for metric, rows in profile.stored_metrics().items():
        for place, node in enumerate(rows.node.tolist()):
            path = tuple(map(str, profile.path(node)))
            found[metric, int(profile.tree.phase[node]), *path] = rows.row(place)
    return found


def test_the_paths_of_all_ranks_are_joined(make_rank: MakeRank) -> None:
    parts = [make_rank(0, name="troubled", factor=3), make_rank(1, name="troubled")]
    job = merge({"b": parts[1], "a": parts[0]})
    assert [row.rank for row in rank_summary.by_rank(job)] == [0, 1]
    of_ranks = [_paths(part) for part in parts]
    joined = _paths(job)
    assert set(joined) == set(of_ranks[0]) == set(of_ranks[1])
    for path, row in joined.items():
        assert row["total"] == sum(each[path]["total"] for each in of_ranks)
        assert row["count"] == sum(each[path]["count"] for each in of_ranks)
    for metric in ("host_time_ns", "sampled_wait_time_ns", "elapsed_time_ns"):
        total = sum(int(p.inclusive(metric)[0]) for p in parts)
        assert int(job.inclusive(metric)[0]) == total > 0
    again = Profile.from_bytes(job.to_bytes())
    assert _paths(again) == joined
    assert (again.run.rank, again.run.ranks) == (ALL_RANKS, 2)


def test_time_and_memory_of_the_ranks_are_added_up(make_rank: MakeRank) -> None:
    parts = [make_rank(0), make_rank(1)]
    run = merge({"a": parts[0], "b": parts[1]}).run
    assert run.wall_ns == 2 * parts[0].run.wall_ns
    assert run.peak_rss_bytes == 2 * parts[0].run.peak_rss_bytes
    assert run.steps == parts[0].run.steps
    assert run.hostname == "box"


def test_trust_names_the_rank_that_recorded_less(make_rank: MakeRank) -> None:
    first, second = make_rank(0, 3), make_rank(2, 3)
    ran = CollectorReport("torch", Status.RAN, "", {"torch": "2.13.0", "threads": "4"})
    less = CollectorReport("torch", Status.DEGRADED, "no code watchers", {"torch": "2.13.0"})
    first = dataclasses.replace(first, trust=TrustReport((ran,), {"dropped": 2}, 100.0, ("note",)))
    second = dataclasses.replace(second, trust=TrustReport((less,), {"dropped": 3}, 200.0))
    trust = merge({"a": first, "b": second}).trust
    (torch,) = trust.collectors
    assert (torch.status, torch.reason) == (Status.DEGRADED, "rank 2: no code watchers")
    assert torch.details == {"torch": "2.13.0"}
    assert trust.counters == {"dropped": 5}
    assert trust.hook_cost_ns_per_event == 150.0
    assert trust.notes == ("2 of the job's 3 ranks are in this profile", "rank 0: note")


def test_payloads_of_one_process_are_left_out_and_named(make_rank: MakeRank) -> None:
    def launches(line: int) -> bytes:
        launch = {"file": "/k.py", "line": line, "operators": [], "source": []}
        return json.dumps({"version": 1, "kernels": {"k": [launch]}}).encode()

    parts = {}
    for rank in range(2):
        profile = make_rank(rank).with_section("memory", b'{"peak": %d}' % rank)
        profile = profile.with_section("torch_compile", launches(7)).with_section("same", b"{}")
        parts[str(rank)] = profile.with_section("findings", b"[%d]" % rank)
    parts["1"] = parts["1"].with_section("torch_compile", launches(9))
    job = merge(parts)
    assert job.sections["same"] == b"{}"
    kernels = json.loads(job.sections["torch_compile"])["kernels"]
    assert [launch["line"] for launch in kernels["k"]] == [7]  # of the lowest rank
    assert set(job.sections) == {"same", "torch_compile", *sections.ALL}
    assert job.trust.notes == (
        "left out, but present in the profiles of the ranks: memory composition at the peak",
    )


def test_uneven_lines_come_first(make_profile: Any) -> None:
    def rank(number: int, slow_ms: int, even_ms: int) -> Profile:
        frames = [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.THREAD, "MainThread"),
            Frame(FrameKind.PYTHON, "load", "/home/me/train.py", 3),
            Frame(FrameKind.OPERATOR, "aten::stack"),
            Frame(FrameKind.PYTHON, "step", "/home/me/train.py", 9),
            Frame(FrameKind.OPERATOR, "aten::mm"),
        ]
        costs = {3: slow_ms * MS, 5: even_ms * MS}
        profile: Profile = make_profile([0, 0, 1, 2, 1, 4], frames, host_time_ns=costs)
        return dataclasses.replace(
            profile, run=dataclasses.replace(profile.run, rank=number, ranks=3)
        )

    job = merge({str(n): rank(n, 40 if n == 2 else 10, 50 + n) for n in range(3)})
    lines = rank_summary.uneven_lines(job, 5)
    assert [line.line for line in lines] == [3, 9]
    assert lines[0].by_rank == pytest.approx((10 * MS, 10 * MS, 40 * MS), rel=1e-3)
    assert lines[1].by_rank == pytest.approx((50 * MS, 51 * MS, 52 * MS), rel=1e-3)
    assert lines[0].excess == pytest.approx(20 * MS, rel=2e-3)
    assert [row.operator_ns for row in rank_summary.by_rank(job)] == [60 * MS, 61 * MS, 92 * MS]
    assert not rank_summary.uneven_lines(rank(0, 1, 1), 5)
    assert not rank_summary.by_rank(rank(0, 1, 1))


@pytest.fixture
def files(make_rank: MakeRank, training_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(training_folder)
    make_rank(0, name="troubled").save("run.rank0.dcprof")
    make_rank(1, name="troubled", factor=2).save("run.rank1.dcprof")
    return ["run.rank0.dcprof", "run.rank1.dcprof"]


def test_the_report_of_a_job(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["merge", "-o", "job.dcprof", *files]) == 0
    assert capsys.readouterr().out == (
        "written to 'job.dcprof', 2 ranks; next: deepcontext report job.dcprof\n"
    )
    assert app.main(["report", "--full", "job.dcprof"]) == 0
    text = capsys.readouterr().out
    assert "(2 ranks)" in text
    assert "of memory at most in all" in text or "of processor time in all" in text
    assert re.search(r"Ranks(?: .*)?\n(?: .*\n)? +rank +working +elapsed .*\n +0 .*\n +1 ", text)
    assert "Lines by imbalance" in text
    assert app.main(["report", "--summary", "job.dcprof"]) == 0
    assert "train.py: 8.40 s of 2 ranks together elapsed" in capsys.readouterr().out

    assert app.main(["report", "--json", "job.dcprof"]) == 0
    report = json.loads(capsys.readouterr().out)
    first, second = report["ranks"]["rows"]
    assert second["operator_ns"] == 2 * first["operator_ns"] > 0
    assert second["waiting_ns"] == 2 * first["waiting_ns"] > 0
    for line in report["ranks"]["uneven_lines"]:
        assert line["by_rank"][1] == pytest.approx(2 * line["by_rank"][0], rel=0.01)
    documented = set(re.findall(r"^\| `ranks\.([\w.]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    found = {
        f"{table}{key}"
        for table in ("rows", "uneven_lines")
        for key in ("", *(f".{key}" for key in report["ranks"][table][0]))
    }
    assert report["ranks"]["collectives"] == []
    rows = [f"collectives.{each.name}" for each in dataclasses.fields(CollectiveTime)]
    found |= {"collectives", *rows}
    assert report["ranks"]["communication"] == []
    found |= {
        "communication",
        *(f"communication.{each.name}" for each in dataclasses.fields(Exchange)),
    }
    assert report["ranks"]["late"] is None
    found |= {"late", *(f"late.{each.name}" for each in dataclasses.fields(LateRanks))}
    found |= {f"late.rows.{each.name}" for each in dataclasses.fields(RankDelays)}
    # tests/analyzers/test_straggler.py has a late rank with places.
    documented = {name for name in documented if not name.startswith("late.rows.places")}
    assert found == documented


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-o", "job.dcprof", "run.rank0.dcprof", "./run.rank0.dcprof"],
            "'./run.rank0.dcprof' and 'run.rank0.dcprof' are the same profile",
        ),
        (
            ["-o", "job.dcprof", "run.rank0.dcprof", "run.rank0.dcprof"],
            "'run.rank0.dcprof' and 'run.rank0.dcprof' are the same profile",
        ),
        (
            ["-o", "job.dcprof", "run.rank1.dcprof", "again.dcprof"],
            "'again.dcprof' and 'run.rank1.dcprof' both belong to rank 1",
        ),
        (["run.rank0.dcprof", "run.rank1.dcprof"], "-o/--output"),
        (
            ["-o", "job.dcprof", "run.rank1.dcprof", "train.dcprof"],
            "'train.dcprof' has no rank, but other profiles have one",
        ),
        (
            ["-o", "x", "merged.dcprof", "run.rank1.dcprof"],
            "are the same profile, which would count twice",
        ),
        (
            ["-o", "./run.rank1.dcprof", "run.rank0.dcprof", "run.rank1.dcprof"],
            "the file is an input of this command",
        ),
        (["-o", "none/job.dcprof", "run.rank0.dcprof", "run.rank1.dcprof"], "none/job.dcprof"),
    ],
)
def test_profiles_that_form_no_job_give_one_line(
    files: list[str], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Profile.load(files[1]).with_section("again", b"").save("again.dcprof")
    assert app.main(["merge", "-o", "merged.dcprof", *files]) == 0
    before = Path(files[1]).read_bytes()
    capsys.readouterr()
    assert app.main(["merge", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert Path(files[1]).read_bytes() == before
    assert not Path("job.dcprof").exists()


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"ranks": 4}, "the first has 2 processes, the second 4"),
        (
            {"script": "generate.py", "command": ("python", "generate.py")},
            "the first ran 'train.py '--run name' 'first try'', the second 'generate.py'",
        ),
        ({"start_unix_ns": STARTED_UNIX_NS + 5 * 10**9}, "one ended 0.8 s before the other"),
        ({"start_unix_ns": STARTED_UNIX_NS - 10**14}, "one ended 99,995.8 s before the other"),
    ],
)
def test_profiles_that_are_not_of_one_job_need_force(
    files: list[str],
    changes: dict[str, Any],
    difference: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    second = Profile.load(files[1])
    run = dataclasses.replace(second.run, **changes)
    dataclasses.replace(second, run=run).save("second.dcprof")
    words = ["merge", "-o", "job.dcprof", files[0], "second.dcprof"]
    assert app.main(words) == 2
    error = capsys.readouterr().err
    assert f"'run.rank0.dcprof' and 'second.dcprof' belong to different jobs: {difference}" in error
    assert "--unrelated" in error
    assert app.main([*words, "--unrelated"]) == 0
    assert len(rank_summary.by_rank(Profile.load("job.dcprof"))) == 2


@pytest.mark.parametrize(
    ("first", "second", "is_one_job"),
    [
        ("worker.py --rank 0", "worker.py --rank 1", True),
        ("worker.py --name a", "worker.py --name b", False),
        ("worker.py --id=ec332b4c82f586931c1d8", "worker.py --id=afd1231b7bda39ce0d31b63ae", True),
        (
            "-c 'spawn_main(tracker_fd=5, pipe_handle=7)' --multiprocessing-fork",
            "-c 'spawn_main(tracker_fd=5, pipe_handle=19)' --multiprocessing-fork",
            True,
        ),
    ],
)
def test_processes_without_a_rank_are_identified_by_their_arguments(
    make_rank: MakeRank, first: str, second: str, *, is_one_job: bool
) -> None:
    def process(words: str) -> Profile:
        profile = make_rank(0, 0)
        command = ("/usr/bin/python", *shlex.split(words))
        run = dataclasses.replace(profile.run, script="", command=command)
        return dataclasses.replace(profile, run=run)

    profiles = {"a": process(first), "b": process(second)}
    if is_one_job:
        assert merge(profiles).run.ranks == 2
    else:
        with pytest.raises(UserError, match="'a' and 'b' belong to different jobs"):
            merge(profiles)


def test_one_name_for_two_measures_is_an_error(
    files: list[str], make_rank: MakeRank, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = make_rank(1)
    rows = dict(profile.stored_metrics())
    descriptor = MetricDescriptor("host_time_ns", "us", Aggregation.MAX, "other")
    rows["host_time_ns"] = dataclasses.replace(rows["host_time_ns"], descriptor=descriptor)
    dataclasses.replace(profile, metrics=rows).save("old.dcprof")
    assert app.main(["merge", "-o", "job.dcprof", files[0], "old.dcprof"]) == 2
    error = capsys.readouterr().err
    assert "metric 'host_time_ns' is a " in error
    assert "a sum in ns" in error
    assert "a max in us" in error
