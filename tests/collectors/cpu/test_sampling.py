"""Time between operators: the right line, the right magnitude, every nanosecond charged once.

Every program is run plainly by `deepcontext profile` and judged by its own clocks, so that a busy
machine moves both sides. Statistical bounds: a sample hits a line with the probability of its share
of the time, so of n samples a share p is found with a standard deviation of sqrt(p (1 - p) / n);
tests allow four of them and two periods for the ends.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries import time_between_operators
from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.verdict import busy_machine
from tests.profiled import profiled

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.summaries.time_between_operators import (
        LineTime,
        SampledTime,
        ThreadTime,
    )

PERIOD_S = 0.01
# The sampler starts before the run is timed and stops after it: milliseconds, more on a full machine.
STARTING_NS = 2e8
# Times the parts of a program by its own clocks and prints them at the end.
CLOCKS = """
import json, time

class Part:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        self.wall, self.cpu = time.perf_counter(), time.thread_time()
    def __exit__(self, *exception):
        wall, cpu = time.perf_counter() - self.wall, time.thread_time() - self.cpu
        parts.setdefault(self.name, [0.0, 0.0])
        parts[self.name][0] += wall
        parts[self.name][1] += cpu

parts = {}
"""


@dataclass(frozen=True)
class Result:
    profile: Profile
    parts: dict[str, tuple[float, float]]  # wall and processor seconds by name
    source: list[str]

    def line(self, text: str) -> SampledTime:
        """Return the sampled time of the one line that ends in `text`."""
        (number,) = [at for at, line in enumerate(self.source, 1) if line.endswith(text)]
        rows: list[LineTime] = [
            row
            for row in time_between_operators.by_line(self.profile)[0]
            if row.line == number and row.file.endswith("program.py")
        ]
        return rows[0].sampled if rows else time_between_operators.SampledTime(0, 0, 0, 0, 0)

    @property
    def main(self) -> ThreadTime:
        return time_between_operators.by_thread(self.profile)[0]


class Run(Protocol):
    """Profiles a program; see `run`."""

    def __call__(self, program: str, *options: str) -> Result: ...


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(program: str, *options: str) -> Result:
        text = CLOCKS + program + "\nprint(json.dumps(parts))\n"
        done = profiled(tmp_path, text, "-q", *options)
        assert not done.stderr, done.stderr
        parts = json.loads(done.stdout.splitlines()[-1])
        return Result(done.profile, parts, text.splitlines())

    return run


def within(found_ns: int, expected_s: float, whole_s: float) -> bool:
    """Say whether a line's time lies within four standard deviations and two periods."""
    count = max(whole_s / PERIOD_S, 1.0)
    share = min(expected_s / whole_s, 1.0)
    sd = whole_s * math.sqrt(max(share * (1 - share), 1 / count) / count)
    return abs(found_ns / 1e9 - expected_s) <= 4 * sd + 2 * PERIOD_S


def test_the_main_thread_is_never_taken_for_an_internal_one(tmp_path: Path) -> None:
    """The main thread has an internal thread's name while it starts one; here it keeps the name."""
    program = """
import ctypes, time
import deepcontext
PR_SET_NAME = 15
assert ctypes.CDLL(None).prctl(PR_SET_NAME, b"deepcontext", 0, 0, 0) == 0
deepcontext.start("out.dcprof")
begun = time.thread_time()
while time.thread_time() < begun + 0.5:
    sum(range(1000))
deepcontext.stop()
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    (main,) = time_between_operators.by_thread(Profile.load(tmp_path / "out.dcprof"))
    assert main.name == "MainThread"
    assert main.sampled.cpu_ns > 0.25e9


def test_waits_for_the_profilers_own_start_are_not_the_users(tmp_path: Path) -> None:
    (tmp_path / "framework.py").write_text("", encoding="utf-8")
    program = """
from deepcontext import _native
from deepcontext.profiler.recording.import_hook import ImportHook
import time

def start_collectors():
    end = _native.sampler_counts()["rounds"] + 50
    while _native.sampler_counts()["rounds"] < end:
        time.sleep(0.001)

ImportHook("framework", start_collectors, print).install()
import framework
"""
    done = profiled(tmp_path, program, "-q", "--cpu-rate", "1000")
    assert (done.stdout, done.stderr) == ("", "")
    (line,) = [
        number for number, text in enumerate(program.splitlines(), 1) if text == "import framework"
    ]
    found = account(done.profile)
    assert found is not None
    assert not [
        place
        for place in found.lines
        if place.frame and place.frame.line == line and place.of(Cause.LOCK)
    ]
    (imported,) = [place for place in found.imports if place.frame and place.frame.line == line]
    assert imported.time_ns > 10e6


def test_the_run_ends_where_its_charged_time_ends(tmp_path: Path) -> None:
    """What the profiler waits for while it stops, such as the GIL, is no part of the run."""
    program = """
import time
import deepcontext
from deepcontext.profiler.recording import usage

deepcontext.start("out.dcprof", snapshot_interval=0)
time.sleep(0.5)
usage._peak_rss_bytes = lambda: time.sleep(0.5) or 1
deepcontext.stop()
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    profile = Profile.load(tmp_path / "out.dcprof")
    (main,) = time_between_operators.by_thread(profile)
    assert main.sampled.total_ns > 0.9 * profile.run.wall_ns


def test_numpy_preprocessing_is_found_at_its_lines(run: Run) -> None:
    result = run("""
import numpy
raw = numpy.random.default_rng(0).random((400, 400))
with Part("all"):
    for _ in range(30):
        with Part("sort"):
            numpy.sort(raw, axis=0)  # sort
        with Part("product"):
            numpy.sin(raw) * numpy.cos(raw)  # product
""")
    whole = result.parts["all"][1]
    for name in ("sort", "product"):
        wall, cpu = result.parts[name]
        line = result.line(f"# {name}")
        assert within(line.cpu_ns, cpu, whole), (name, line, cpu, whole)
        assert within(line.cpu_ns + line.wait_ns, wall, result.parts["all"][0]), (name, line, wall)


def test_time_at_a_lock_is_waiting_at_the_line_that_takes_it(run: Run) -> None:
    result = run("""
import threading
lock, taken = threading.Lock(), threading.Event()

def hold():
    for _ in range(20):
        with lock:
            taken.set()
            time.sleep(0.03)
        time.sleep(0.001)

holder = threading.Thread(target=hold)
holder.start()
taken.wait()
with Part("all"):
    for _ in range(12):
        with Part("lock"):
            lock.acquire()  # lock
        lock.release()
        with Part("work"):
            sum(range(400_000))  # work
holder.join()
""")
    whole = result.parts["all"][0]
    line = result.line("# lock")
    assert within(line.wait_ns, result.parts["lock"][0], whole), (line, result.parts)
    assert line.cpu_ns < 0.3 * line.wait_ns
    work = result.line("# work")
    assert within(work.cpu_ns, result.parts["work"][1], whole), (work, result.parts)


def test_threads_that_compete_for_the_gil_wait_for_it(run: Run) -> None:
    result = run("""
import threading

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

threads = [threading.Thread(target=spin, args=(0.4,)) for _ in range(3)]
with Part("all"):
    for thread in threads:
        thread.start()
    with Part("join"):
        for thread in threads:
            thread.join()  # join
""")
    others = [row.sampled for row in time_between_operators.by_thread(result.profile)[1:]]
    assert abs(sum(row.cpu_ns for row in others) / 1e9 - 1.2) < 0.1
    # One runs at a time; at any moment the two others wait.
    assert sum(row.gil_wait_ns for row in others) > 0.3 * sum(row.wait_ns for row in others)
    join = result.line("# join")
    assert within(join.wait_ns, result.parts["join"][0], result.parts["all"][0])


def test_a_thread_is_charged_all_of_its_time(run: Run) -> None:
    result = run("""
def recurse(depth):
    return recurse(depth - 1) if depth else sum(range(3000))

with Part("all"):
    for _ in range(300):
        recurse(50)
        time.sleep(0.001)
""")
    row = result.main
    covered = row.operator_ns + row.sampled.cpu_ns + row.sampled.wait_ns
    assert covered >= 0.98 * result.profile.run.wall_ns
    assert covered <= 1.02 * result.profile.run.wall_ns + STARTING_NS
    ticks_ns = 2e7  # user and system time are counted in hundredths of a second
    process_ns = result.profile.run.cpu_user_ns + result.profile.run.cpu_system_ns
    assert row.sampled.cpu_ns <= process_ns + ticks_ns


def test_operators_and_the_rest_add_up(run: Run) -> None:
    pytest.importorskip("torch")
    result = run("""
import torch
torch.set_num_threads(1)
layer = torch.nn.Linear(64, 64)
data = torch.ones(32, 64)
with Part("all"):
    for _ in range(60):
        loss = layer(data).relu().sum()
        loss.backward()
        sum(range(100_000))  # python
""")
    row = result.main
    covered = row.operator_ns + row.sampled.cpu_ns + row.sampled.wait_ns
    assert row.operator_ns > 0
    wall = result.profile.run.wall_ns
    assert 0.98 * wall <= covered <= 1.02 * wall + STARTING_NS
    (main,) = (
        node
        for node in result.profile.tree.children(0)
        if result.profile.frame(node).name == "MainThread"
    )
    assert result.profile.inclusive("elapsed_time_ns")[main] == covered
    trust = result.profile.trust.counters
    assert trust["samples_lost"] <= 0.02 * (trust["samples_running"] + trust["samples_waiting"]) + 2


@pytest.mark.long
def test_an_operator_without_a_processor_waits_for_one(run: Run) -> None:
    pytest.importorskip("torch")
    result = run("""
import os, subprocess, torch
torch.set_num_threads(1)
data = torch.ones(300, 300)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
rivals = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(3)]
with Part("all"):
    begun = time.perf_counter()
    while time.perf_counter() - begun < 2:
        data @ data
for rival in rivals:
    rival.kill()
    rival.wait()
""")
    used_ns = 1e9 * result.parts["all"][1]
    found = account(result.profile)
    assert found.of(Cause.PROCESSOR) >= 0.6 * (2e9 - used_ns)
    assert (
        0.5 * used_ns <= found.of(Cause.OPERATORS, Cause.FORWARD) <= used_ns + 0.3 * (2e9 - used_ns)
    )
    assert busy_machine(found) >= 0.3


def test_the_end_of_a_run_without_a_framework_names_the_lines_that_ran(tmp_path: Path) -> None:
    source = "total = 0\nfor number in range(4_000_000):\n    total += number * number\n"
    done = profiled(tmp_path, source)
    assert re.search(r"time +share +spent on +line +source", done.stderr)
    assert "total += number * number" in done.stderr


def test_no_rate_no_samples(run: Run) -> None:
    result = run("sum(range(10))", "--cpu-rate", "0")
    assert not time_between_operators.is_sampled(result.profile)
    (report,) = [each for each in result.profile.trust.collectors if each.name == "cpu sampling"]
    assert report.status == "off"


def test_a_signal_the_program_uses_is_left_to_it(run: Run) -> None:
    result = run("""
import os, signal
seen = []
signal.signal(signal.SIGURG, lambda number, frame: seen.append(number))
with Part("all"):
    for _ in range(20):
        os.kill(os.getpid(), signal.SIGURG)
        sum(range(200_000))
assert len(seen) == 20, seen
assert signal.getsignal(signal.SIGURG) not in (signal.SIG_DFL, signal.SIG_IGN)
""")
    (report,) = [each for each in result.profile.trust.collectors if each.name == "cpu sampling"]
    assert report.status == "degraded"
    assert "SIGURG" in report.reason
    row = result.main
    assert row.sampled.cpu_ns + row.sampled.wait_ns >= 0.98 * result.profile.run.wall_ns


def test_a_program_that_restores_every_handler_goes_on_being_sampled(run: Run) -> None:
    """Lightning's trainer does so: the default of SIGURG is what Python knows of it."""
    result = run("""
import signal
handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
for number, handler in handlers.items():
    if handler is not None and number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, handler)
assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
def spin():
    return sum(number * number for number in range(4_000_000))
with Part("all"):
    spin()
""")
    (report,) = [each for each in result.profile.trust.collectors if each.name == "cpu sampling"]
    assert (report.status, report.reason) == ("ran", "")
    found = result.line("range(4_000_000))")
    assert within(found.cpu_ns, result.parts["all"][1], result.main.sampled.cpu_ns / 1e9)


def test_a_thread_that_lives_on_has_its_name_without_a_snapshot(run: Run) -> None:
    result = run(
        """
import threading
time.sleep(1)  # the first snapshot is written meanwhile
threading.Thread(target=time.sleep, args=(600,), name="the waiter", daemon=True).start()
time.sleep(0.3)
""",
        "--snapshot-interval",
        "600",
    )
    assert "the waiter" in {row.name for row in time_between_operators.by_thread(result.profile)}


def test_beside_a_second_interpreter_the_gil_is_held_by_who_holds_it(run: Run) -> None:
    """What runs in the other interpreter is charged to the line that runs it."""
    result = run("""
import hashlib
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
data = bytes(1 << 20)

def without_gil():
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        hashlib.sha256(data)  # a millisecond each without the GIL

code = "import time\\nend = time.thread_time() + 0.5\\nwhile time.thread_time() < end: pass"
with Part("all"):
    without_gil()
    with Part("other"):
        interpreters.run_string(other, code)  # in the other
interpreters.destroy(other)
""")
    released = result.line("hashlib.sha256(data)  # a millisecond each without the GIL")
    assert released.cpu_ns > 0
    assert released.gil_ns < 0.5 * released.cpu_ns
    inside = result.line("# in the other")
    assert within(inside.cpu_ns, result.parts["other"][1], result.main.sampled.cpu_ns / 1e9)
    assert inside.gil_ns > 0  # of a thread that seldom gets a processor, only a part is known
