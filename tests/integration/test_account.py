"""The account of real programs adds up to their elapsed time, and names the line that has most of it.

Each program plants its work: the seconds of a line are measured by the program itself, with a clock
around the statement, so that the machine's speed does not matter.
"""

from __future__ import annotations

import importlib.util
import json
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.account import Account, Cause, account
from tests.profiled import profiled

if TYPE_CHECKING:
    from pathlib import Path

# Prints the elapsed seconds of the marked statement, and those since the first line.
HEAD = "import json, time; begun = time.perf_counter()\n"
TAIL = "\nprint(json.dumps([spent, time.perf_counter() - begun]))\n"
PROGRAMS = {
    "python": (
        """
def count():
    words = {}
    for number in range(2_000_000): words[number % 1000] = number  # here
    return words
t = time.perf_counter(); count(); spent = time.perf_counter() - t
""",
        {Cause.PYTHON},
    ),
    "sleep": (
        "t = time.perf_counter(); time.sleep(1.0); spent = time.perf_counter() - t  # here",
        {Cause.SLEEP},
    ),
    "lock": (
        """
import threading
done = threading.Event()
threading.Timer(1.0, done.set).start()
t = time.perf_counter(); done.wait(); spent = time.perf_counter() - t  # here
""",
        {Cause.LOCK},
    ),
    "socket": (
        """
import socket, threading
here, there = socket.socketpair()
threading.Timer(1.0, lambda: there.send(b"x")).start()
t = time.perf_counter(); here.recv(1); spent = time.perf_counter() - t  # here
""",
        {Cause.IO},
    ),
    "child": (
        """
import subprocess
t = time.perf_counter(); subprocess.run(["sleep", "1"]); spent = time.perf_counter() - t  # here
""",
        {Cause.PROCESS, Cause.IO},
    ),
    "pool": (
        """
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(1) as pool:
    t = time.perf_counter(); pool.submit(time.sleep, 1.5).result(); spent = time.perf_counter() - t  # here
""",
        {Cause.PROCESS},
    ),
    "futures of threads": (
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    t = time.perf_counter(); pool.submit(time.sleep, 1.5).result(); spent = time.perf_counter() - t  # here
""",
        {Cause.LOCK},
    ),
    "pool of threads": (
        """
from multiprocessing.pool import ThreadPool
with ThreadPool(1) as pool:
    t = time.perf_counter(); pool.apply(time.sleep, (1.5,)); spent = time.perf_counter() - t  # here
""",
        {Cause.LOCK},
    ),
    "torch": (
        """
import torch
x = torch.randn(400, 400)
x @ x
t = time.perf_counter()
for _ in range(150): x @ x  # here
spent = time.perf_counter() - t
""",
        {Cause.OPERATORS, Cause.FORWARD},
    ),
    "jax": (
        """
import jax
f = jax.jit(lambda x: (x @ x).sum())
x = jax.numpy.ones((1000, 1000)); f(x).block_until_ready()
t = time.perf_counter()
for _ in range(100): f(x).block_until_ready()  # here
spent = time.perf_counter() - t
""",
        {Cause.PROGRAMS, Cause.DEVICE},
    ),
}
# Beside them: waiting for a processor, if the machine is busy, and the rest of the statement.
_LEAST_OF_CAUSE = 0.5


def _profiled(folder: Path, name: str) -> tuple[Account, list[float], int]:
    text = f"{HEAD}{PROGRAMS[name][0]}{TAIL}"
    done = profiled(folder, text)
    (line,) = [
        number for number, each in enumerate(text.splitlines(), 1) if each.endswith("# here")
    ]
    return account(done.profile), json.loads(done.stdout), line


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_account_of_a_program(tmp_path: Path, name: str) -> None:
    if name in {"torch", "jax"} and importlib.util.find_spec(name) is None:
        pytest.skip(f"needs {name}")
    found, (spent_s, _), line = _profiled(tmp_path, name)
    # Complete, and nothing twice: `whole_ns` is larger where more was counted than elapsed.
    wall_ns = Profile.load(tmp_path / "out.dcprof").run.wall_ns
    edges_ns = 0.001 * wall_ns + 1e6
    assert found.whole_ns <= wall_ns + edges_ns
    assert found.of(Cause.UNKNOWN) <= edges_ns
    place = max((each for each in found.lines if each.frame), key=lambda each: each.time_ns)
    assert place.frame is not None
    assert place.frame.line == line
    # A sample decides which line is charged, and samples are late on a busy machine.
    assert place.time_ns / 1e9 == pytest.approx(spent_s, abs=0.1 * wall_ns / 1e9 + 0.1)
    causes = dict(place.causes)
    expected = sum(causes.get(cause, 0) for cause in PROGRAMS[name][1])
    busy = causes.get(Cause.PROCESSOR, 0)
    assert expected >= _LEAST_OF_CAUSE * (place.time_ns - busy)
