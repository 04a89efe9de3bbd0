"""Roles of real processes, told from what they run; and what the report says about them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "report-json.md"
PROGRAM = """
import multiprocessing, os, signal, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import Pool, ThreadPool

import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(8)

def wait(_=None):
    time.sleep(0.4)
    torch.ones(2).sum()

def starts_a_child():
    child = multiprocessing.Process(target=wait, name="of a pool")
    child.start()
    child.join()

def killed(answers):
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)

def main():
    for batch in DataLoader(Slow(), batch_size=4, num_workers=2):
        pass
    fork = multiprocessing.get_context("fork")
    with Pool(1, context=fork) as pool:
        pool.map(wait, [0])
        pool.close()
        pool.join()
    with ThreadPool(1) as threads:
        threads.map(wait, [0])
    with ProcessPoolExecutor(1, fork) as pool:
        pool.submit(starts_a_child).result()
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.Process(target=killed, name="killed", args=(theirs,))
    child.start()
    theirs.close()
    ours.poll(None)  # until the child is gone
    child.join()
    until = time.process_time() + 1
    while time.process_time() < until:  # the program is the busiest process
        torch.ones(100, 100).sum()

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the run directory `job.dcrun` of the program above."""
    path = tmp_path_factory.mktemp("roles")
    (path / "job.py").write_text(PROGRAM, encoding="utf-8")
    words = ("profile", "-q", "--children", "frameworks", "job.py")
    assert _deepcontext(path, *words).stdout == ""
    return path


def _deepcontext(
    folder: Path, *words: str, columns: int = 100, encoding: str = "utf-8"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deepcontext", *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(columns), "PYTHONIOENCODING": encoding},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )


@pytest.mark.long
def test_processes_have_the_roles_of_what_they_run(folder: Path) -> None:
    told = json.loads(_deepcontext(folder, "report", "--json", "job.dcrun").stdout)["processes"]
    program, *children = told
    assert (program["role"], program["exit_reason"]) == ("program", "exit")
    roles = {each["process_name"]: each["role"] for each in children}
    loaders = [name for name, role in roles.items() if role == "DataLoader worker"]
    pools = [name for name, role in roles.items() if role == "pool worker"]
    assert (len(loaders), len(pools)) == (2, 2)
    assert {name for name, role in roles.items() if role == "child"} == {"of a pool", "killed"}
    by_name = {each["process_name"]: each for each in children}
    killed = by_name["killed"]
    assert (killed["exit_reason"], killed["exit_status"]) == ("snapshot", -9)
    assert killed["uncovered_ns"] > 0
    assert {each["ended"] for each in told if each is not killed} == {""}
    assert by_name["of a pool"]["parent_pid"] == by_name[pools[1]]["pid"]
    assert sum(each["share"] for each in told) == pytest.approx(1)


@pytest.mark.parametrize(("columns", "encoding"), [(80, "ascii"), (200, "utf-8")])
def test_the_report_begins_with_the_processes(folder: Path, columns: int, encoding: str) -> None:
    report = _deepcontext(folder, "report", "job.dcrun", columns=columns, encoding=encoding)
    lines = report.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[1].startswith("Processes (7)")
    assert "ended" in lines[2]
    (killed,) = (line for line in lines[3:10] if "killed by SIGKILL" in line)
    assert "child" in killed
    assert [line.split()[1] for line in lines[3:10]].count("DataLoader") == 2
    assert "program   python job.py" in report.stdout.replace(sys.executable, "python")


def test_the_report_tells_how_long_a_batch_takes_and_where(folder: Path) -> None:
    (loader,) = json.loads(_deepcontext(folder, "report", "--json", "job.dcrun").stdout)["loaders"]
    assert (loader["worker_count"], loader["at_once"], loader["batch_count"]) == (2, 2, 10)
    slow = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "sleep(0.02)" in text)
    loop = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "in DataLoader(" in text)
    assert [place["line"] for place in loader["loops"]] == [loop]
    first = loader["lines"][0]
    assert (first["function"], first["line"]) == ("Slow.__getitem__", slow)
    # Four samples of 20 ms each, read by a sampler, with processes of other programs in between.
    assert loader["batch_ns"] > 60e6
    assert first["time_ns"] > loader["making_ns"] / 2
    assert loader["wait_for_batch_ns"] > 20e6
    text = _deepcontext(folder, "report", "job.dcrun", columns=120).stdout
    assert f"the loop at job.py:{loop} waits " in text
    assert re.search(rf"job.py:{slow} +time.sleep\(0.02\)", text)


def _line(text: str) -> int:
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def test_waiting_is_told_against_what_the_other_processes_did(folder: Path) -> None:
    told = json.loads(_deepcontext(folder, "report", "--json", "job.dcrun").stdout)
    names = {each["pid"]: each["process_name"] for each in told["processes"]}
    program = told["processes"][0]["pid"]
    of_program = [each for each in told["waits"] if each["waiters"] == [program]]
    for role, place, other in (
        ("child", "ours.poll(None)", "time.sleep(1)"),
        ("pool worker", "pool.map(wait", "time.sleep(0.4)"),
        ("DataLoader worker", "in DataLoader(", "sleep(0.02)"),
    ):
        (wait,) = (each for each in of_program if each["other_role"] == role)
        assert wait["wait_ns"] > 0.2e9, role
        assert _line(place) in {each["line"] for each in wait["places"]}, role
        assert _line(other) in {each["line"] for each in wait["lines"]}, role
        assert wait["other_ns"] > 0.2e9, role
    (of_children,) = (each for each in of_program if each["other_role"] == "child")
    assert [names[pid] for pid in of_children["others"]] == ["killed"]
    documented = set(
        re.findall(r"^\| `waits\.(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert of_children.keys() == documented
    text = _deepcontext(folder, "report", "job.dcrun", columns=160).stdout
    section = text.partition("Waiting for other processes")[2]
    assert re.search(rf"program {program} +child \d+ .* job.py:{_line('time.sleep(1)')} ", section)


def test_the_summary_has_the_processes_in_short(folder: Path) -> None:
    summary = _deepcontext(folder, "report", "--summary", "job.dcrun", columns=200).stdout
    first, second, *_ = summary.splitlines()
    assert first.startswith("7 processes, with their share of processor time: program (")
    assert ", 2 DataLoader workers (" in first
    assert ", 2 children (" in first
    assert first.endswith("; ended: 1 killed by SIGKILL")
    assert second.startswith("job.py: ")


def test_a_process_of_the_run_is_reported_by_its_number(folder: Path) -> None:
    told = json.loads(_deepcontext(folder, "report", "--json", "job.dcrun").stdout)["processes"]
    pid = next(each["pid"] for each in told if each["role"] == "DataLoader worker")
    words = ("report", "--json", "--process", str(pid), "job.dcrun")
    assert json.loads(_deepcontext(folder, *words).stdout)["run"]["pid"] == pid
