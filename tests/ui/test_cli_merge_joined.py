"""`deepcontext merge` of many ranks: one tree, on any number of processes, despite damaged files."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.artifact import profile_of
from deepcontext.profiler.model.job.choosing import choose
from deepcontext.profiler.model.job.engines import Engine
from deepcontext.profiler.model.job.fold import fold
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.ui.cli import app
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

RANKS = 70
SECTIONS = ("paths", "spread", "ranks", "columns")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the profiles of a job; rank 7 is twice as slow."""
    folder = tmp_path_factory.mktemp("job")
    made = random_profile(300, seed=4)
    rows = dict(made.stored_metrics())
    for rank in range(RANKS):
        factor = 2 if rank == 7 else 1
        metrics = {
            name: dataclasses.replace(each, total=each.total * factor)
            for name, each in rows.items()
        }
        run = dataclasses.replace(made.run, rank=rank, ranks=RANKS, hostname=f"n{rank // 8}")
        dataclasses.replace(made, metrics=metrics, run=run).save(folder / f"r{rank}.dcprof")
    return folder


def _files(job: Path) -> list[str]:
    return [str(job / f"r{rank}.dcprof") for rank in range(RANKS)]


def _merge(output: Path, words: Sequence[str | Path], *options: str, code: int = 0) -> Profile:
    # Without processes, which take longer to start than these profiles to join.
    engine = () if "--engine" in options else ("--engine", "processes:1")
    assert app.main(["merge", "-o", str(output), *engine, *options, *map(str, words)]) == code
    return Profile.load(output)


def test_many_ranks_become_one_tree(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = _merge(tmp_path / "job.dcprof", _files(job))
    assert "70 ranks; next: deepcontext report" in capsys.readouterr().out
    one = Profile.load(job / "r0.dcprof")
    paths = {
        (one.path(node), tuple(one.tree.phase[list(one.tree.path(node))].tolist()))
        for node in range(len(one.tree))
    }
    assert len(merged.tree) == len(paths)
    assert (merged.run.rank, merged.run.ranks) == (ALL_RANKS, RANKS)
    for metric in ("host_time_ns", "call_duration_ns"):
        total = int(one.metrics[metric].total.sum())
        assert int(merged.metrics[metric].total.sum()) == (RANKS + 1) * total
    spread = sections.spreads_of(merged)["host_time_ns"]
    assert (int(spread.most_rank[0]), int(spread.least_rank[0])) == (7, 0)


def test_order_and_number_of_processes_do_not_matter(job: Path, tmp_path: Path) -> None:
    files, outputs = _files(job), [tmp_path / f"{name}.dcprof" for name in "abc"]
    _merge(outputs[0], files, "--engine", "processes:1")
    _merge(outputs[1], files[::-1], "--engine", "processes:2")
    _merge(outputs[2], [job])  # a folder
    assert len({output.read_bytes() for output in outputs}) == 1


def test_partial_results_are_merged_again(job: Path, tmp_path: Path) -> None:
    files = _files(job)
    whole = _merge(tmp_path / "whole.dcprof", files)
    _merge(tmp_path / "one.dcprof", files[:30])
    _merge(tmp_path / "two.dcprof", files[30:])
    again = _merge(tmp_path / "job.dcprof", [tmp_path / "one.dcprof", tmp_path / "two.dcprof"])
    for section in SECTIONS:
        assert again.sections[section] == whole.sections[section], section
    assert again.run == whole.run
    assert again.trust == dataclasses.replace(whole.trust)


def test_damaged_files_are_reported_and_left_out(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "r3.dcprof"
    damaged.write_bytes((job / "r3.dcprof").read_bytes()[:-100])
    files = [*_files(job)[:3], *_files(job)[4:], str(damaged), str(tmp_path / "lost.dcprof")]
    merged = _merge(tmp_path / "job.dcprof", files, code=5)
    assert merged.run.ranks == RANKS - 1
    error = capsys.readouterr().err
    assert f"left out: cannot read '{damaged}': the file is damaged or cut short" in error
    assert "lost.dcprof': No such file" in error
    assert merged.trust.notes[0].startswith("2 of 71 files could not be read: ")
    assert merged.trust.notes[1] == "69 of the job's 70 ranks are in this profile"


def test_other_processes_and_older_results_of_a_folder_are_left_out(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "all"
    (folder / "n0").mkdir(parents=True)
    for file in _files(job):
        (folder / "n0" / Path(file).name).symlink_to(file)
    other = random_profile(20)
    other.save(folder / "n0" / "loader.dcprof")
    for _ in range(2):
        assert _merge(folder / "job.dcprof", [folder]).run.ranks == RANKS
        assert "left out: 1 processes that are not ranks" in capsys.readouterr().err
    files = [*_files(job), str(folder / "n0/loader.dcprof")]
    words = ["merge", "-o", str(tmp_path / "x"), "--engine", "processes:1", *files]
    assert app.main(words) == 2
    assert "loader.dcprof' has no rank, but other profiles have one" in capsys.readouterr().err


def test_files_without_a_rank_are_numbered_by_name(tmp_path: Path) -> None:
    for number in range(3):
        random_profile(20 + number).save(tmp_path / f"{number}.dcprof")
    merged = _merge(tmp_path / "job.dcprof", [tmp_path])
    assert [(row.rank, Path(row.name).name) for row in sections.rows_of(merged)] == [
        (0, "0.dcprof"),
        (1, "1.dcprof"),
        (2, "2.dcprof"),
    ]


@pytest.mark.parametrize(
    ("extra", "options", "message"),
    [
        ("copy.dcprof", (), "are the same profile, which would count twice"),
        ("again.dcprof", (), "both belong to rank 3"),
        (
            "other.dcprof",
            (),
            "belong to different jobs: the first ran 'train.py', the second 'serve.py'",
        ),
        (
            "old.dcprof",
            (),
            "old.dcprof' was merged by an older version, which did not join ranks",
        ),
        ("copy.dcprof", ("--engine", "threads"), "unknown engine 'threads'; use 'processes'"),
        ("copy.dcprof", ("--engine", "processes:0"), "names no number of processes"),
        (
            "copy.dcprof",
            ("--engine", "dask"),
            "engine 'dask' needs an address, as in 'dask:ADDRESS'",
        ),
        ("copy.dcprof", ("--engine", "ray:"), "engine 'ray' needs an address, as in 'ray:ADDRESS'"),
        ("copy.dcprof", ("--engine", "mpi:4"), "unknown engine 'mpi:4'; use 'processes'"),
        (
            "copy.dcprof",
            ("--engine", "mpi"),
            "engine 'mpi' has no workers; start it as 'mpiexec -n N",
        ),
        ("empty", (), "holds no profile (*.dcprof)"),
    ],
)
def test_profiles_that_form_no_job_give_one_line(
    job: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    extra: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    (tmp_path / "empty").mkdir()
    first = Profile.load(job / "r3.dcprof")
    first.save(tmp_path / "copy.dcprof")
    first.with_section("again", b"").save(tmp_path / "again.dcprof")
    run = dataclasses.replace(first.run, rank=99, script="serve.py", command=("python", "serve.py"))
    dataclasses.replace(first, run=run).save(tmp_path / "other.dcprof")
    run = dataclasses.replace(first.run, rank=ALL_RANKS, ranks=2)
    dataclasses.replace(first, run=run).save(tmp_path / "old.dcprof")
    output = tmp_path / "job.dcprof"
    options = options or ("--engine", "processes:1")
    words = ["merge", "-o", str(output), *options, *_files(job), str(tmp_path / extra)]
    assert app.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not output.exists()


def test_an_interrupted_merge_goes_on(job: Path, tmp_path: Path) -> None:
    files = [str(shutil.copy2(file, tmp_path)) for file in _files(job)]
    whole = _merge(tmp_path / "whole.job", files)
    resume = ("--resume", str(tmp_path / "parts"))
    output = tmp_path / "again.job"

    def resumed(code: int = 0) -> bytes:
        _merge(output, files, *resume, code=code)
        return output.read_bytes()

    expected = (tmp_path / "whole.job").read_bytes()
    assert resumed() == expected
    parts = sorted((tmp_path / "parts").iterdir())
    assert len(parts) == 3
    parts[0].unlink()  # as if the merge had been killed before
    parts[1].write_bytes(parts[1].read_bytes()[:-9])
    assert resumed() == expected
    # The files themselves are not read again while they are unchanged.
    first = Path(files[0])
    status = first.stat()
    first.write_bytes(bytes(status.st_size))
    os.utime(first, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert resumed() == expected
    os.utime(first, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    resumed(code=5)
    assert Profile.load(output).run.ranks == RANKS - 1 == whole.run.ranks - 1
    words = ["merge", "-o", str(output), "--resume", files[1], "--engine", "processes:1", *files]
    assert app.main(words) == 2


@pytest.mark.parametrize(
    ("engine", "module"),
    [("dask:tcp://127.0.0.1:1", "distributed"), ("ray:auto", "ray"), ("mpi", "mpi4py.MPI")],
)
def test_a_missing_extra_of_an_engine_is_named(
    job: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    module: str,
) -> None:
    extra, package = engine.partition(":")[0], module.partition(".")[0]
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "mpi4py.futures"])
    assert app.main(["merge", "-o", str(tmp_path / "x"), "--engine", engine, str(job)]) == 4
    error = capsys.readouterr().err
    assert f"error: engine '{extra}' needs the package {package}, which cannot be loaded (" in error
    assert f'pip install "deepcontext-profiler[{extra}]"' in error
    assert error.count("\n") == 1


def test_a_bad_engine_is_an_error_where_few_files_are_merged(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["merge", "-o", str(tmp_path / "x"), "--engine", "spark", *_files(job)[:2]]
    assert app.main(words) == 2
    assert capsys.readouterr().err == (
        "error: unknown engine 'spark'; use 'processes', 'processes:N', 'dask:ADDRESS', "
        "'dask:FILE.json', 'ray:ADDRESS' or 'mpi'\n"
    )


class _Elsewhere(ThreadPoolExecutor):
    """Workers in another folder, as those of a cluster may be."""

    workers = 1

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        def run() -> Any:
            with contextlib.chdir("/"):
                return fn(*args, **kwargs)

        return super().submit(run)


def test_relative_names_are_read_by_workers_of_another_folder(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job)
    files = sorted(path.name for path in job.glob("*.dcprof"))
    with Engine(lambda: _Elsewhere(1), None) as engine:
        chosen = choose(files, engine)
        part = fold(chosen.names, engine).part
    # The names of the rows are those of the command line, whatever the engine.
    assert sorted(row.name for row in part.rows) == files
    _merge(tmp_path / "here.dcprof", files)
    assert profile_of(part).to_bytes() == (tmp_path / "here.dcprof").read_bytes()


def test_no_readable_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(66):
        (tmp_path / f"{number}.dcprof").write_bytes(b"no profile")
    assert app.main(["merge", "-o", str(tmp_path / "job"), str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "error: none of the 66 files could be merged; the first: cannot read" in error


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def test_a_killed_worker_s_files_are_read_again(job: Path) -> None:
    broken = _pool()
    broken.submit(os._exit, 1).exception()
    pools = [_pool(), broken]
    with Engine(pools.pop, 1) as engine:
        assert len(fold(_files(job), engine).part.rows) == RANKS
        assert engine.restarts == 1


def test_workers_killed_again_and_again_are_an_error() -> None:
    with (
        Engine(_pool, 1) as engine,
        pytest.raises(EnvironmentProblem, match="a worker process was killed repeatedly"),
    ):
        list(engine.in_order(os._exit, [1, 1]))


def test_progress_is_shown_on_a_terminal(job: Path, tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    output = str(tmp_path / "job.dcprof")
    merge = ["merge", "-o", output, "--engine", "processes:1", str(job)]
    words = [sys.executable, "-m", "deepcontext", *merge]
    subprocess.run(words, stderr=end, stdout=subprocess.DEVNULL, check=True)
    os.close(end)
    shown = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert "merging: 32 of 70 profiles" in shown
    assert shown.endswith("merging: 70 of 70 profiles\r\n")


def test_every_view_opens_a_joined_job(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "job.dcprof"
    merged = _merge(output, [job])
    capsys.readouterr()
    for words in (["report"], ["report", "--full"], ["report", "--summary"], ["analyze"]):
        assert app.main([*words, str(output)]) == 0
    text = capsys.readouterr().out
    assert "ranks     70 on 9 hosts, 10.0 s elapsed" in text
    assert "Ranks (20 of 70)" in text
    assert re.search(r"slowest +7 .*\n +slowest +0 ", text)
    assert re.search(r"typical +\d+ .*\n +least +\S+ .*\n +median +\S+ .*\n +most +\S+ ", text)
    assert "Lines by imbalance" in text
    assert app.main(["report", "--json", str(output)]) == 0
    ranks = json.loads(capsys.readouterr().out)["ranks"]
    assert [row["rank"] for row in ranks["rows"]] == list(range(RANKS))
    by_rank = ranks["uneven_lines"][0]["by_rank"]
    assert by_rank.index(max(by_rank)) == 7
    page = tmp_path / "job.html"
    assert app.main(["view", "--html", str(page), str(output)]) == 0
    assert "Traceback" not in capsys.readouterr().err
    assert "rank_imbalance" not in {finding.id for finding in run_analyzers(merged)}
