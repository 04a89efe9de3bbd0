"""Commands that take a run directory show all ranks of its job together."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli import app
from deepcontext.ui.cli.open_run import open_profiles
from deepcontext.ui.web.fitting import fitting
from deepcontext.ui.web.open_profiles import ChangedFileError, Deferred, OpenProfiles

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
    run_directory.create(Path(RUN), program="train.py", options={})
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
        "whole job, 3 processes together",
    ]
    job = opened.jobs[0]
    assert [(each.name, each.file) for each in job.roles] == [
        ("whole job, 3 processes", 4),
        ("2 ranks", 0),
        ("1 child", 3),
    ]
    assert [(each.name, each.depth, each.file) for each in job.processes] == [
        ("rank 0", 0, 1),
        ("rank 1", 0, 2),
        ("child", 1, 3),
    ]
    before = opened.get(3)
    changed = Profile.load(files[2])
    dataclasses.replace(changed, run=dataclasses.replace(changed.run, wall_ns=1)).save(files[2])
    with pytest.raises(ChangedFileError, match="reload the page"):
        opened.get(3)
    opened.refresh()
    last = opened.get(3)
    assert (last.name, last.profile.run.wall_ns) == (before.name, 1)


def test_the_page_begins_with_the_busiest_process(files: list[Path]) -> None:
    for file, cpu_ns in zip(files, (1, 1, 8), strict=True):
        profile = Profile.load(file)
        run = dataclasses.replace(profile.run, ranks=0, cpu_user_ns=cpu_ns, cpu_system_ns=0)
        dataclasses.replace(profile, run=run).save(file)
    names = [each.name for each in open_profiles([RUN], source_text=True).refresh()]
    assert names[:3] == ["child 12, 80.0 %", "program 10, 10.0 %", "program 11, 10.0 %"]
    assert names[3:] == ["whole job, 3 processes together", "2 programs together"]


def test_of_a_run_directory_only_the_first_profile_is_read(files: list[Path]) -> None:
    opened = open_profiles([RUN], source_text=True)
    assert opened.loaded() == [0]
    assert opened.compared == 2
    last = opened.get(3)
    assert last.profile.run.pid == 12
    for number in (1, 2, 3):
        assert opened.get(number).profile.source == str(files[number - 1])
    assert isinstance(opened.refresh()[4], Deferred)
    one = Profile.load(files[0]).inclusive("host_time_ns")[0]
    assert opened.get(4).profile.inclusive("host_time_ns")[0] == 3 * one
    assert opened.loaded() == [0]


def test_two_run_directories_are_compared_by_their_first_profiles(files: list[Path]) -> None:
    shutil.copytree(RUN, "other.dcrun")
    opened = open_profiles([RUN, "other.dcrun"], source_text=True)
    names = [each.name for each in opened.refresh()]
    assert names[:2] == [f"{RUN}: all ranks together", "other.dcrun: all ranks together"]
    assert opened.compared == 2
    assert [job.name for job in opened.jobs] == [RUN, "other.dcrun"]
    for job in opened.jobs:
        for row in job.processes:
            assert names[row.file].startswith(f"{row.name} {row.pid}")
    assert {job.roles[1].file for job in opened.jobs} == {0, 1}


def test_files_named_one_by_one_are_no_job(files: list[Path]) -> None:
    opened = open_profiles([str(files[2]), str(files[1])], source_text=True)
    assert [each.name for each in opened.refresh()][:2] == [files[2].name, files[1].name]
    assert opened.jobs == ()
    assert opened.compared == 2
    assert opened.loaded() == [0, 1]


def test_files_of_two_runs_have_no_processes(files: list[Path]) -> None:
    profile = Profile.load("train.dcprof")
    run = dataclasses.replace(profile.run, start_unix_ns=1, pid=profile.run.pid + 1)
    dataclasses.replace(profile, run=run).save("earlier.dcprof")
    assert open_profiles(["earlier.dcprof", "train.dcprof"], source_text=True).jobs == ()


def test_what_does_not_fit_into_one_file_is_told(files: list[Path]) -> None:
    opened = open_profiles([RUN], source_text=True)
    shown, notices = fitting(opened, lambda each: 10, most_bytes=25)
    assert [each.name for each in shown.refresh()] == [
        "all ranks together",
        "child 12 of rank 1, 33.3 %",
        "whole job, 3 processes together",
    ]
    assert "2 of 5 profiles are not in this page, which holds up to 25 B" in notices[0]
    (job,) = shown.jobs
    assert [each.file for each in job.roles] == [2, 0, 1]
    assert [each.file for each in job.processes] == [-1, -1, 1]
    everything, notices = fitting(opened, lambda each: 10)
    assert (len(everything), notices) == (5, ())


def test_many_alike_processes_are_one_row(files: list[Path]) -> None:
    profile = Profile.load(files[0])
    for number in range(70):
        _save(
            profile,
            f"{100 + number}-3",
            ranks=0,
            pid=100 + number,
            parent_pid=10,
            process_name=f"ForkProcess-{number}",
            cpu_user_ns=number,
            cpu_system_ns=0,
        )
    (job,) = open_profiles([RUN], source_text=True).jobs
    (group,) = job.groups
    assert group.name == "70 children"
    busiest, typical = job.processes[group.busiest], job.processes[group.typical]
    assert (busiest.cpu_ns, typical.cpu_ns) == (69, 34)
    assert sum(group.bins) == 70
    assert group.cpu_ns == sum(range(70))
    assert sum(row.group == 0 for row in job.processes) == 70


def test_a_full_page_stops_reading_processes(files: list[Path]) -> None:
    for number in range(20):
        _save(Profile.load(files[0]), f"{100 + number}-3", ranks=0, pid=100 + number)
    opened = open_profiles([RUN], source_text=True)
    tried = []

    def size_of(each: OpenProfiles) -> int:
        tried.append(each)
        return 10

    shown, notices = fitting(opened, size_of, most_bytes=0)
    assert len(tried) == 8
    assert len(shown) == 1
    assert f"{len(opened) - 1} of {len(opened)} profiles are not in this page" in notices[0]


def test_the_profile_of_the_program_says_that_others_are_in_the_run_directory(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.dcprof").hardlink_to(files[0])
    assert app.main(["report", "job.dcprof"]) == 0
    told = "[deepcontext] 'job.dcprof' is the profile of one process; 'job.dcrun' holds those of all 3\n"
    assert capsys.readouterr().err == told
    assert app.main(["report", "train.dcprof"]) == 0
    assert capsys.readouterr().err == ""
