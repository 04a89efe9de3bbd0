"""Commands that take a run directory show all ranks of its job together."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli import app
from deepcontext.ui.cli.open_run import open_profiles

RUN = "job.dcrun"
TOGETHER = "'job.dcrun' holds the profiles of 3 processes; what follows is its 2 ranks together"


def _save(profile: Profile, name: str, **facts: Any) -> Path:
    run = dataclasses.replace(profile.run, **facts)
    path = Path(RUN, "host", f"{name}.dcprof")
    path.parent.mkdir(exist_ok=True)
    dataclasses.replace(profile, run=run).save(path)
    return path


@pytest.fixture
def files(training_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the files of a run directory: two ranks and a worker of rank 1."""
    monkeypatch.chdir(training_folder)
    run_directory.create(Path(RUN), program="train.py", shim=Path(__file__), options={})
    profile = Profile.load("train.dcprof")
    ranks = [
        _save(profile, f"rank0000{rank}-{rank}-1", rank=rank, ranks=2, pid=10 + rank)
        for rank in range(2)
    ]
    worker = _save(
        profile, "12-2", rank=1, ranks=2, pid=12, parent_pid=11, process_name="ForkProcess-1"
    )
    return [*ranks, worker]


def test_ranks_are_merged_if_no_merged_profile_exists(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ["report", "--json", RUN],
        ["analyze", RUN],
        ["export", "--format", "collapsed", "-o", "-", RUN],
        ["diff", "train.dcprof", RUN],
    ):
        assert app.main(words) == 0, words
        printed, told = capsys.readouterr()
        assert f"{TOGETHER}, times are sums" in told
        if words[0] == "report":
            report = json.loads(printed)
            assert (report["run"]["rank"], report["run"]["ranks"]) == (-1, 2)
            one = Profile.load(files[0]).inclusive("host_time_ns")[0]
            assert report["total"] == 2 * one > 0
    assert not Path(RUN, "job.dcprof").exists()


def test_what_merge_wrote_is_shown_until_a_rank_is_newer(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["merge", RUN]) == 0
    printed, told = capsys.readouterr()
    assert (
        printed
        == f"written to '{RUN}/job.dcprof', 2 ranks; next: deepcontext report {RUN}/job.dcprof\n"
    )
    assert told == "[deepcontext] left out: 1 processes that are not ranks\n"
    app.main(["report", RUN])
    assert f"{TOGETHER}, as merged before" in capsys.readouterr().err
    newer = Path(RUN, "job.dcprof").stat().st_mtime_ns + 1
    os.utime(files[0], ns=(newer, newer))
    app.main(["report", RUN])
    assert f"{TOGETHER}, times are sums" in capsys.readouterr().err


def test_no_other_profile_is_loaded_where_merge_wrote_one(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["merge", RUN]) == 0
    merged_ns = Path(RUN, "job.dcprof").stat().st_mtime_ns
    for file in files:  # nothing that can be loaded
        file.write_bytes(b"damaged")
        os.utime(file, ns=(merged_ns, merged_ns))
    assert app.main(["analyze", RUN]) == 0
    assert f"{TOGETHER}, as merged before" in capsys.readouterr().err
    assert app.main(["report", RUN]) != 0  # lists the processes
    for number in range(64):
        copy = files[0].with_name(f"{1000 + number}-3.dcprof")
        copy.write_bytes(b"damaged")
        os.utime(copy, ns=(merged_ns, merged_ns))
    assert app.main(["report", RUN]) == 0
    assert "holds the profiles of 67 processes; what follows is its 2 ranks together" in (
        capsys.readouterr().err
    )


def test_a_merged_profile_that_is_damaged_is_not_used(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert files
    Path(RUN, "job.dcprof").write_bytes(b"damaged")
    assert app.main(["report", RUN]) == 0
    assert f"{TOGETHER}, times are sums" in capsys.readouterr().err


def test_ranks_that_are_not_of_one_job_are_not_merged(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _save(Profile.load(files[1]), files[1].stem, script="other.py")
    assert app.main(["report", RUN]) == 0
    told = capsys.readouterr().err
    assert "[deepcontext] its ranks cannot be merged: " in told
    assert "what follows is process 1" in told


def test_only_a_run_directory_has_a_default_output(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for names in ([RUN, RUN], [str(file) for file in files[:2]]):
        assert app.main(["merge", *names]) == 2
        assert "name the profile to write with -o/--output" in capsys.readouterr().err


def test_the_page_names_the_processes_by_role(files: list[Path]) -> None:
    opened = open_profiles([RUN], source_text=True)
    assert [each.name for each in opened.refresh()] == [
        "all ranks together",
        "rank 0 10, 33.3 %",
        "rank 1 11, 33.3 %",
        "child 12 of rank 1, 33.3 %",
    ]
    changed = Profile.load(files[2])
    dataclasses.replace(changed, run=dataclasses.replace(changed.run, wall_ns=1)).save(files[2])
    last = opened.refresh()[-1]
    assert (last.name, last.profile.run.wall_ns) == ("child 12 of rank 1, 33.3 %", 1)


def test_the_page_begins_with_the_busiest_process(files: list[Path]) -> None:
    for file, cpu_ns in zip(files, (1, 1, 8), strict=True):
        profile = Profile.load(file)
        run = dataclasses.replace(profile.run, ranks=0, cpu_user_ns=cpu_ns, cpu_system_ns=0)
        dataclasses.replace(profile, run=run).save(file)
    names = [each.name for each in open_profiles([RUN], source_text=True).refresh()]
    assert names == ["child 12, 80.0 %", "program 10, 10.0 %", "program 11, 10.0 %"]
