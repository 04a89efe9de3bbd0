"""Ranks of a job: one run directory, attempts kept apart, workers left to their rank."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.run_info import RunInfo

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no torch.distributed"
)

RESTARTED = """
    import os
    import time

    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        if os.environ["RANK"] == "1":
            time.sleep(600)  # torchrun ends it
        raise ValueError("planted")

    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    dist.init_process_group("gloo")
    loader = DataLoader(torch.arange(8.0), batch_size=4, num_workers=1)
    total = sum(batch.sum() for batch in loader)
    dist.all_reduce(total)
    assert total == 56
    dist.destroy_process_group()
"""
# No launcher: the program numbers its processes itself.
SPAWNED = """
    import torch
    import torch.distributed as dist

    def work(rank, store):
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
        dist.all_reduce(torch.ones(4))
        dist.destroy_process_group()

    if __name__ == "__main__":
        import os
        torch.multiprocessing.spawn(work, (os.path.abspath("store"),), nprocs=2)
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )


def runs(folder: Path) -> dict[str, RunInfo]:
    paths = run_directory.profiles(folder / "program.dcrun")
    return {path.name: Profile.load(path).run for path in paths}


@pytest.mark.long
def test_a_restart_of_the_ranks_keeps_both_attempts(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(RESTARTED), encoding="utf-8")
    launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1")
    profile = ("-m", "deepcontext", "profile", "--children", "frameworks", "--no-report")
    done = run(tmp_path, *launcher, *profile, "program.py")
    said = [line for line in done.stderr.splitlines() if line.startswith("[deepcontext]")]
    assert said == [
        "[deepcontext] profiles of 2 ranks written to 'program.dcrun'",
        "[deepcontext] next: deepcontext report program.dcrun",
    ]
    found = runs(tmp_path)
    # What a rank starts has the launcher's variables, too.
    workers = [run for run in found.values() if run.process_name]
    ranks = Counter((run.rank, run.attempt) for run in found.values() if not run.process_name)
    assert {(run.rank, run.attempt) for run in workers} == {(0, 1), (1, 1)}
    assert ranks.keys() <= {(0, 0), (1, 0), (0, 1), (1, 1)}
    assert ranks.keys() >= {(0, 0), (0, 1), (1, 1)}  # rank 1 may be ended before it begins
    assert all(
        ("attempt1" in name) is (run.attempt == 1)
        for name, run in found.items()
        if run not in workers
    )
    done = run(tmp_path, "deepcontext", "merge", "-o", "job.dcprof", "program.dcrun")
    assert "left out: 2 processes that are not ranks, " in done.stderr
    assert "ranks of earlier attempts" in done.stderr
    job = Profile.load(tmp_path / "job.dcprof")
    assert (job.run.ranks, job.run.attempt) == (2, 1)
    assert job.query().name("c10d::allreduce_").total("host_time_ns") > 0


@pytest.mark.long
def test_processes_that_the_program_numbers_are_ranks(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(SPAWNED), encoding="utf-8")
    run(tmp_path, "deepcontext", "profile", "-q", "--children", "frameworks", "program.py")
    found = runs(tmp_path).values()
    facts = sorted((run.rank, run.ranks, run.rank_source) for run in found)
    assert facts == [
        (0, 0, ""),
        (0, 2, "torch.distributed"),
        (1, 2, "torch.distributed"),
    ]


def test_a_child_of_a_rank_that_is_not_chosen_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("__version__ = '0'\n", encoding="utf-8")  # imported in no time
    program = """
        import os, subprocess, sys
        for rank in "01":
            variables = {**os.environ, "RANK": rank, "WORLD_SIZE": "2"}
            subprocess.run([sys.executable, "-c", "import jax"], env=variables, check=True)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
    words = ("--children", "frameworks", "--ranks", "1", "program.py")
    done = run(tmp_path, "deepcontext", "profile", "-q", *words)
    assert done.stderr == ""
    assert sorted((run.rank, run.ranks) for run in runs(tmp_path).values()) == [(0, 0), (1, 2)]


def test_chosen_ranks_are_those_of_the_launcher_that_a_node_runs(tmp_path: Path) -> None:
    # Under srun, a launcher on each node is itself one of few ranks.
    node = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"}
    words = ("-m", "deepcontext", "profile", "--ranks", "9", "-o", "x.dcrun", "/bin/echo", "ran")
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}, **node},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("ran\n", "")
