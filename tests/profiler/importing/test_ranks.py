"""The traces of a job's ranks become one profile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.ui.cli.app import main
from deepcontext.ui.cli.inputs import load_one
from deepcontext.ui.cli.open_run import open_profiles
from tests.profiler.importing import traces

if TYPE_CHECKING:
    from pathlib import Path

RANKS = 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "traces"
    made.mkdir()
    (made / "notes.txt").write_text("not a trace")
    for rank in range(RANKS):
        facts = traces.NVIDIA | {"distributedInfo": {"rank": rank, "world_size": RANKS}}
        traces.write(made / f"rank{rank}.json.gz", traces.training(), **facts)
    return made


def test_a_folder_of_traces_is_a_job(folder: Path) -> None:
    job, one = load_one(str(folder)), load(folder / "rank0.json.gz")
    assert (job.run.rank, job.run.ranks) == (ALL_RANKS, RANKS)
    assert len(job.tree) == len(one.tree)
    for metric in ("host_time_ns", "gpu_time_ns", "traced_time_ns"):
        assert job.exclusive(metric).sum() == RANKS * one.exclusive(metric).sum(), metric


def test_traces_merge_into_a_file_and_leave_nothing_else(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "job.dcprof")
    before = sorted(os.listdir(folder))  # noqa: PTH208
    assert main(["merge", "-o", output, "--engine", "processes:1", str(folder)]) == 0
    assert load(output).run.ranks == RANKS
    assert sorted(os.listdir(folder)) == before  # noqa: PTH208
    assert main(["report", str(folder)]) == 0
    assert "Ranks" in capsys.readouterr().out


def test_the_page_opens_all_of_them(folder: Path) -> None:
    opened = open_profiles([str(folder)], source_text=False)
    assert [each.name for each in opened.refresh()][:RANKS] == [
        f"rank{n}.json.gz" for n in range(RANKS)
    ]


def test_a_merge_of_damaged_traces_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = folder / "rank1.json.gz"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    assert main(["merge", "-o", str(tmp_path / "job.dcprof"), str(folder)]) == 5
    assert "rank1.json.gz" in capsys.readouterr().err
    assert not (tmp_path / "job.dcprof").exists()
