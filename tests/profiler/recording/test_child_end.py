"""Sessions in children of multiprocessing, which may end without exit handlers."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext import Profile

if TYPE_CHECKING:
    from pathlib import Path

METHODS = ["fork", "forkserver", "spawn"]
PROCESS = """
import multiprocessing, sys, time

def end():
    import deepcontext
    deepcontext.step()

def child(number, fails):
    import deepcontext, multiprocessing.util
    for _ in range(2):  # the file is that of the last session
        deepcontext.start(f"out{number}.dcprof", snapshot_interval=3600)
        if _ == 0:
            deepcontext.stop()
    multiprocessing.util.Finalize(None, end, exitpriority=-100)  # the program's own
    with deepcontext.scope("before the first snapshot"): pass
    time.sleep(0.5)
    with deepcontext.scope("after it"): pass
    if fails:
        raise ValueError("of the program")

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    for number in range(2):
        process = context.Process(target=child, args=(number, number == 1))
        process.start()
        process.join()
        print(process.exitcode)
"""
EXECUTOR = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor

def begin():
    import deepcontext
    deepcontext.start("out0.dcprof", snapshot_interval=3600)

def work():
    import deepcontext
    time.sleep(0.5)
    with deepcontext.scope("after it"): pass
    return 7

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with ProcessPoolExecutor(1, mp_context=context, initializer=begin) as executor:
        print(executor.submit(work).result())
"""

# A session starts while the child reads what it is to run, as where that imports torch.
BEGINS = """
import time
import deepcontext

class Work:
    def __reduce__(self):
        return begin, ()

    def __call__(self):
        time.sleep(0.5)
        with deepcontext.scope("after it"): pass

def begin():
    deepcontext.start("out0.dcprof", snapshot_interval=3600)
    return Work()
"""
UNPICKLING = """
import multiprocessing, sys

if __name__ == "__main__":
    import begins
    process = multiprocessing.get_context(sys.argv[1]).Process(target=begins.Work())
    process.start()
    process.join()
    print(process.exitcode)
"""


def run(folder: Path, source: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(source)
    return subprocess.run(
        [sys.executable, "program.py", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def scopes(profile: Profile) -> set[str]:
    return {node.frame.name for node in profile.query().kind("scope")}


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_a_session_in_a_process_records_to_its_end(tmp_path: Path, method: str) -> None:
    done = run(tmp_path, PROCESS, method)
    assert done.stdout == "0\n1\n", done.stderr
    for number in range(2):
        profile = Profile.load(tmp_path / f"out{number}.dcprof")
        assert profile.run.exit_reason == "exit"
        assert profile.run.steps == 1, "what the program does at the end comes first"
        assert scopes(profile) == {"before the first snapshot", "after it"}


@pytest.mark.parametrize("method", METHODS)
def test_a_session_in_a_worker_of_an_executor_records_to_its_end(
    tmp_path: Path, method: str
) -> None:
    done = run(tmp_path, EXECUTOR, method)
    assert done.stdout == "7\n", done.stderr
    profile = Profile.load(tmp_path / "out0.dcprof")
    assert profile.run.exit_reason == "exit"
    assert scopes(profile) == {"after it"}


def test_a_session_does_not_import_multiprocessing(tmp_path: Path) -> None:
    code = """
import sys, deepcontext
deepcontext.start()
deepcontext.stop()
print([name for name in sys.modules if name.startswith("multiprocessing")])
"""
    assert run(tmp_path, code).stdout == "[]\n"


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_session_that_starts_while_a_child_reads_its_work_records_to_its_end(
    tmp_path: Path, method: str
) -> None:
    (tmp_path / "begins.py").write_text(BEGINS)
    assert run(tmp_path, UNPICKLING, method).stdout == "0\n"
    profile = Profile.load(tmp_path / "out0.dcprof")
    assert (profile.run.exit_reason, scopes(profile)) == ("exit", {"after it"})
