"""`deepcontext merge --engine`: Dask, Ray and MPI give the bytes that one process gives."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.model.profile import Profile
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.ecosystem

MPIEXEC = shutil.which("mpiexec.hydra", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
RANKS = 150  # five tasks
ENVIRONMENT = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
MERGE = ("-m", "deepcontext", "merge")
CLUSTER = """\
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as c:
        from distributed import Client
        Client(c).write_scheduler_file("scheduler.json")
        print(c.scheduler_address, flush=True)
        sys.stdin.read()
"""
# A task whose worker dies in the middle of it, once.
KILLED = """\
import os
import signal
import sys
from pathlib import Path
from deepcontext.profiler.model.job.engines import engine_of

def square(task):
    number, mark = task
    if number == 2 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number

if __name__ == "__main__":
    with engine_of(sys.argv[1], 4) as engine:
        squares = list(engine.in_order(square, [(number, sys.argv[2]) for number in range(6)]))
    print(squares)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `ranks/`, of which one file is damaged, and `serial.dcprof`."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "ranks").mkdir()
    made = random_profile(200, seed=4)
    for rank in range(RANKS):
        run = dataclasses.replace(made.run, rank=rank, ranks=RANKS, hostname=f"n{rank // 8}")
        dataclasses.replace(made, run=run).save(folder / "ranks" / f"r{rank}.dcprof")
    damaged = folder / "ranks" / "r40.dcprof"
    damaged.write_bytes(damaged.read_bytes()[:-50])
    done = _run((*MERGE, "-o", "serial.dcprof", "--engine", "processes:1", "ranks"), folder)
    assert done.returncode == 5
    return folder


@pytest.fixture(scope="module")
def scheduler(job: Path) -> Iterator[str]:
    """Return the address of a Dask cluster, which has also written `scheduler.json`."""
    _need("distributed")
    (job / "cluster.py").write_text(CLUSTER, "utf-8")
    with subprocess.Popen(
        [sys.executable, "cluster.py"],
        cwd=job,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        yield cluster.stdout.readline().strip()
        cluster.stdin.close()


def _need(module: str) -> None:
    # Without importing the module, which would change this process's environment.
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}")


def _run(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _check_merged(job: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 5, done.stderr
    assert "r40.dcprof': the file is damaged or cut short" in done.stderr
    assert (job / "other.dcprof").read_bytes() == (job / "serial.dcprof").read_bytes()
    merged = Profile.load(job / "other.dcprof")
    assert merged.run.ranks == RANKS - 1
    assert merged.trust.notes[0].startswith("1 of 150 files could not be read: ")


def _merge(job: Path, engine: str) -> subprocess.CompletedProcess[str]:
    (job / "other.dcprof").unlink(missing_ok=True)
    return _run((*MERGE, "-o", "other.dcprof", "--engine", engine, "ranks"), job)


def test_processes_give_the_same_file(job: Path) -> None:
    _check_merged(job, _merge(job, "processes:3"))


def test_dask_gives_the_same_file(job: Path, scheduler: str) -> None:
    assert scheduler.startswith("tcp://127.0.0.1:")
    for address in (scheduler, "scheduler.json"):
        _check_merged(job, _merge(job, f"dask:{address}"))


def test_ray_gives_the_same_file(job: Path) -> None:
    _need("ray")
    _check_merged(job, _merge(job, "ray:local"))


@pytest.mark.skipif(MPIEXEC is None, reason="needs mpich")
def test_mpi_gives_the_same_file(job: Path) -> None:
    _need("mpi4py")
    assert MPIEXEC is not None
    (job / "other.dcprof").unlink(missing_ok=True)
    merge = (*MERGE, "-o", "other.dcprof", "--engine", "mpi", "ranks")
    done = subprocess.run(
        [MPIEXEC, "-n", "3", sys.executable, "-m", "mpi4py.futures", *merge],
        cwd=job,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    _check_merged(job, done)


@pytest.mark.parametrize("engine", ["processes:2", "dask", "ray:local"])
def test_a_killed_worker_s_task_is_run_again(
    job: Path, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "dask":
        engine = f"dask:{request.getfixturevalue('scheduler')}"
    elif engine == "ray:local":
        _need("ray")
    program = tmp_path / "program.py"
    program.write_text(KILLED, "utf-8")
    done = _run((str(program), engine, str(tmp_path / "mark")), job)
    assert done.stdout == "[0, 1, 4, 9, 16, 25]\n", done.stderr
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("engine", "module", "message"),
    [
        ("dask:tcp://127.0.0.1:1", "distributed", "error: cannot reach the Dask scheduler 'tcp://"),
        ("ray:127.0.0.1:1", "ray", "error: cannot reach the Ray cluster '127.0.0.1:1': "),
    ],
)
def test_a_cluster_that_does_not_answer(job: Path, engine: str, module: str, message: str) -> None:
    _need(module)
    done = _merge(job, engine)
    assert done.returncode == 4, done.stderr
    assert message in done.stderr
    assert not (job / "other.dcprof").exists()


def test_an_error_of_a_task_reads_as_without_the_engine(
    job: Path, scheduler: str, tmp_path: Path
) -> None:
    again = tmp_path / "again.dcprof"
    Profile.load(job / "ranks" / "r3.dcprof").with_section("again", b"").save(again)
    files = (*sorted(map(str, (job / "ranks").glob("*.dcprof"))), str(again))
    for engine in (f"dask:{scheduler}", "ray:local", "processes:1"):
        done = _run((*MERGE, "-o", str(tmp_path / "x"), "--engine", engine, *files), tmp_path)
        assert done.returncode == 2, done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith("error: ")
        assert last.endswith("both belong to rank 3; name one profile for each rank")
