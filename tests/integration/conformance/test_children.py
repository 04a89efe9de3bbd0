"""Processes that the program starts: none writes the parent's profile, and two folders are all they see."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from deepcontext.profiler.recording import launch as launch_package

POOL = """\
import multiprocessing, os, sys
def square(x):
    return x * x, "deepcontext" in sys.modules or "not loaded"
class Adder(multiprocessing.Process):
    def run(self):
        sys.exit(5)
if __name__ == "__main__":
    multiprocessing.set_start_method({method!r})
    with multiprocessing.Pool(2) as pool:
        print([value for value, _ in pool.map(square, range(5))])
    adder = Adder()
    adder.start()
    adder.join()
    print(adder.exitcode)
    open("pid.txt", "w").write(str(os.getpid()))
"""
FORKS: dict[str, str] = {
    "child exits with sys.exit": "if child == 0:\n    sys.exit(3)\n",
    "child raises": "if child == 0:\n    raise ValueError('in the child')\n",
    "child runs to the end": "",
    "child ends by os._exit": "if child == 0:\n    os._exit(6)\n",
    "child outlives the parent": (
        "if child == 0:\n    time.sleep(0.6)\n    sys.exit(0)\nos.close(1)\nsys.exit(0)\n"
    ),
    "child becomes another program": (
        "if child == 0:\n    os.execv(sys.executable, [sys.executable, '-c', 'print(7)'])\n"
    ),
    "child starts threads": (
        "import threading\n"
        "if child == 0:\n"
        "    t = threading.Thread(target=time.sleep, args=(0.4,)); t.start(); t.join()\n"
    ),
}
AFTER_FORK = """\
if child != 0:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
BEFORE_FORK = """\
import os, sys, time
open("pid.txt", "w").write(str(os.getpid()))
child = os.fork()
"""


def assert_is_of_the_parent(profile: Any, same_as_python: Any) -> None:
    assert profile.run.pid == int((same_as_python.folder / "pid.txt").read_text())


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(same_as_python: Any, method: str) -> None:
    profile = same_as_python(POOL.format(method=method))
    assert_is_of_the_parent(profile, same_as_python)


@pytest.mark.long
@pytest.mark.parametrize("source", FORKS.values(), ids=FORKS)
def test_forked_child(same_as_python: Any, source: str) -> None:
    profile = same_as_python(BEFORE_FORK + source + AFTER_FORK)
    assert_is_of_the_parent(profile, same_as_python)
    assert profile.run.exit_reason != "snapshot"


def test_fork_warns_no_more_than_without_the_profiler(same_as_python: Any) -> None:
    same_as_python(
        "import logging, os, random, time\n"  # two of them have fork hooks of their own
        "time.sleep(0.5)\n"  # a snapshot has been written
        "for _ in range(3):\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "print('forked')\n",
        environment={"PYTHONWARNINGS": "error"},
    )


def test_fork_from_a_thread(same_as_python: Any) -> None:
    same_as_python(
        "import os, threading, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "def work():\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit(4)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n",
    )


def test_child_python_runs_plain(same_as_python: Any) -> None:
    child = (
        "import os, sys; print(sorted(sys.modules), sys.path, list(os.environ.items()), sys.flags)"
    )
    same_as_python(
        f"import subprocess, sys\nchild = {child!r}\n"
        "subprocess.run([sys.executable, '-c', child])\n",
        options=("--children", "none"),
    )


def test_shell_child_gets_the_environment_of_plain_python(
    same_as_python: Any,
) -> None:
    same_as_python(
        "import os\nprint(os.system('env | grep -v ^_= | sort'))\n", options=("--children", "none")
    )


@pytest.mark.parametrize("python_path", ["lib", ":lib", "", None])
def test_two_folders_on_pythonpath_are_all_that_the_program_and_its_children_see(
    same_as_python: Any, python_path: str | None
) -> None:
    show = (
        "import os, sys\n"
        "print(sorted(sys.modules) if __name__ == 'child' else '', sys.path, sys.flags, sys.argv)\n"
        "print([(k, v) for k, v in sorted(os.environ.items()) if k != 'PYTHONPATH'], flush=True)\n"
        "print([*filter(None, [os.environ.get('PYTHONPATH')])], flush=True)\n"
    )
    program = (
        f"{show}import subprocess\n"
        f"child = {show!r}.replace('__name__', repr('child'))\n"
        "subprocess.run([sys.executable, '-c', child])\n"
        "subprocess.run(['sh', '-c', 'env | grep -v ^_= | grep -v ^PYTHONPATH= | sort'])\n"
    )
    (same_as_python.folder / "program.py").write_text(program)
    own = {} if python_path is None else {"PYTHONPATH": python_path}
    plain = same_as_python.run([sys.executable, "program.py"], environment=own)
    command = same_as_python.profile_command("program.py")
    profiled = same_as_python.run(command, environment=own, is_profiled=True)
    shim = Path(launch_package.__file__).parent / "children_path"
    launch = f"{shim}:{same_as_python.profile_path.with_suffix('.dcrun') / '.launch'}"
    seen = profiled.stdout.decode()
    assert seen.count(launch) == 2  # by the program and by its child
    expected = seen.replace(f"{launch}:", "").replace(f"['{launch}']", "[]")
    assert (profiled.status, expected) == (plain.status, plain.stdout.decode())


def test_many_short_children(same_as_python: Any) -> None:
    same_as_python(
        "import subprocess\nprint([subprocess.run(['true']).returncode for _ in range(50)])\n",
    )
