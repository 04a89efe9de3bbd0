"""Counters of the kernel and the processor: the right line, the right number, and why not.

Events of the kernel's own are counted for real; a processor that shows no counters, as in most
virtual machines, refuses its events for real. A value rises between two samples and is charged to
the place of the second: at each end of a part of the program at most the increase of one interval
goes astray. Intervals differ, so tests allow three of the mean length.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from rich.console import Console

import deepcontext
from deepcontext import _native, errors
from deepcontext.collectors.cpu import counters
from deepcontext.collectors.cpu.counters import Counters
from deepcontext.profiler.format.counter_names import COUNTER_NAMES, COUNTERS
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.summaries import counters as counter_summary
from deepcontext.ui.report import render_report, report_to_dict
from tests.profiled import profiled

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

FAULTS, SWITCHES = "page_fault_count", "context_switch_count"
ANSWERS = {name: error for name, error, _ in _native.ask_for_perf_events(COUNTER_NAMES)}
REFUSED = [name for name, error in ANSWERS.items() if error]
needs_kernel_events = pytest.mark.skipif(
    bool(ANSWERS["page-faults"] or ANSWERS["context-switches"]),
    reason="the kernel lets nothing be counted here",
)
MAP = """
import mmap
PAGES = 50_000
def fresh():
    area = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    return area
def touch(area):
    for at in range(0, PAGES * mmap.PAGESIZE, mmap.PAGESIZE):
        area[at] = 1  # touching
"""


class Run(Protocol):
    """Profiles a program and gives its profile, what it printed, and what the profiler did."""

    def __call__(self, program: str, *options: str) -> tuple[Profile, str, str]: ...


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return lambda program, *options: profiled(tmp_path, program, *options)


def charged(profile: Profile, metric: str, line_ends: str, program: str) -> tuple[int, float]:
    """Return what a line was charged, and what it was charged at one sample in the mean."""
    (number,) = [at for at, line in enumerate(program.splitlines(), 1) if line.endswith(line_ends)]
    rows = [row for row in counter_summary.by_line(profile)[0] if row.line == number]
    total = sum(row.counts[metric] for row in rows)
    nodes = profile.query().line(number).nodes()
    samples = sum(int(profile.counts(metric)[node]) for node in nodes)
    return total, total / max(samples, 1)


def whole(profile: Profile, metric: str) -> int:
    return int(profile.inclusive(metric)[0])


@needs_kernel_events
def test_page_faults_are_counted_at_the_line_that_touches_new_memory(run: Run) -> None:
    rounds, pages = 6, 50_000
    program = f"""{MAP}
import time
for _ in range({rounds}):
    area = fresh()
    touch(area)
    area.close()
end = time.thread_time() + 0.5
while time.thread_time() < end: sum(range(1000))  # spinning
"""
    profile, _, _ = run(program, "-q", "--counters", "page-faults")
    found, _ = charged(profile, FAULTS, "# touching", program)
    assert rounds * pages <= whole(profile, FAULTS) <= 1.05 * rounds * pages
    # On a busy machine one interval may take most of a round, so no bound follows from their mean.
    assert 0.7 * rounds * pages <= found <= 1.05 * rounds * pages
    assert charged(profile, FAULTS, "# spinning", program)[0] <= pages


@needs_kernel_events
def test_context_switches_are_counted_where_a_thread_gives_up_its_processor(run: Run) -> None:
    naps = 500
    program = f"""
import time
for _ in range({naps}):
    time.sleep(0.001)  # napping
"""
    profile, _, _ = run(program, "-q", "--counters", "context-switches,page-faults")
    found, at_once = charged(profile, SWITCHES, "# napping", program)
    assert whole(profile, SWITCHES) >= naps
    assert found >= naps - 3 * at_once


@needs_kernel_events
def test_what_operators_cause_is_counted_in_them(run: Run) -> None:
    pytest.importorskip("torch")
    program = """
import torch
for _ in range(40):
    torch.ones(10_000_000)
"""
    profile, _, _ = run(program, "-q", "--counters", "page-faults,context-switches")
    in_operators = profile.query().kind("operator").total(FAULTS)
    assert in_operators > 0
    rows, _ = counter_summary.by_line(profile)
    by_line = {row.line: row.counts[FAULTS] for row in rows}
    assert by_line[4] >= in_operators


@needs_kernel_events
def test_counting_goes_on_after_forks(run: Run) -> None:
    program = f"""{MAP}
import os
for _ in range(8):
    area = fresh()
    touch(area)
    area.close()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
"""
    profile, _, _ = run(program, "-q", "--counters", "page-faults")
    # What rises from a fork until the sampler's thread is back is not counted.
    assert 4 * 50_000 < whole(profile, FAULTS) <= 1.05 * 8 * 50_000
    assert profile.trust.counters["forked_children"] == 8


@needs_kernel_events
def test_descriptors_are_the_samplers_own_and_are_closed(run: Run) -> None:
    program = """
import os, threading
def files():
    return sorted(os.listdir("/proc/self/fd"))
before = files()
for _ in range(300):
    thread = threading.Thread(target=lambda: sum(range(20_000)))
    thread.start()
    thread.join()
assert files() == before
"""
    profile, _, _ = run(
        program, "-q", "--counters", "page-faults,context-switches", "--cpu-rate", "1000"
    )
    assert profile.trust.counters["threads_counted"] > 1
    # A thread may end between being found and being counted.
    assert profile.trust.counters["threads_not_counted"] <= 3


@needs_kernel_events
@pytest.mark.parametrize(
    ("limit", "reason"),
    [(0, "more threads at once than can be counted"), (60, "too many open files")],
)
def test_threads_that_are_not_counted_are_told(run: Run, limit: int, reason: str) -> None:
    program = f"""
import resource, threading, time
if {limit}:
    resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
over = threading.Event()
threads = [threading.Thread(target=over.wait) for _ in range(140)]
for thread in threads:
    thread.start()
time.sleep(1)
over.set()
for thread in threads:
    thread.join()
"""
    profile, _, stderr = run(
        program, "--counters", "page-faults,context-switches", "--cpu-rate", "500"
    )
    trust = profile.trust
    assert trust.counters["threads_not_counted"] > 0
    assert reason in " ".join(stderr.split())
    assert trust.counters["samples_waiting"] > 100


@pytest.mark.skipif(not REFUSED, reason="every event can be counted here")
def test_an_event_that_is_refused_is_named_with_the_reason_and_the_rest_runs(run: Run) -> None:
    names = ",".join(COUNTER_NAMES)
    profile, stdout, stderr = run("sum(range(60_000_000))\nprint('over')", "--counters", names)
    assert stdout == "over\n"
    (report,) = [each for each in profile.trust.collectors if each.name == "counters"]
    assert all(name in report.reason for name in REFUSED)
    assert report.reason in " ".join(stderr.split())
    assert not {COUNTERS[name].name for name in REFUSED} & set(profile.metrics)
    trust = profile.trust.counters
    assert trust["samples_running"] + trust["samples_waiting"] > 0
    if ANSWERS["cycles"] == errno.ENOENT:
        assert "virtual machine without a PMU" in report.reason
    if len(REFUSED) < len(COUNTER_NAMES):
        assert report.status == "degraded"


@pytest.mark.skipif(bool(ANSWERS["cycles"] or ANSWERS["instructions"]), reason="no PMU here")
def test_instructions_per_cycle_are_known_of_a_loop(run: Run) -> None:
    profile, _, _ = run("sum(range(100_000_000))", "-q", "--counters", "cycles,instructions")
    (line, *_), _ = counter_summary.by_line(profile)
    assert line.instructions_per_cycle is not None
    assert 0.1 < line.instructions_per_cycle < 10


@needs_kernel_events
def test_the_report_shows_them_and_documents_its_keys(run: Run) -> None:
    program = f"{MAP}\ntouch(fresh())\n"
    profile, _, _ = run(program, "-q", "--counters", "page-faults,context-switches")
    told = report_to_dict(profile, limit=3, metric="host_time_ns")["counter_use"]
    assert isinstance(told, dict)
    keys = {"", *told, *(f"lines.{key}" for key in told["lines"])}
    keys |= {f"lines.rows.{key}" for key in told["lines"]["rows"][0]}
    page = (Path(__file__).parents[3] / "docs/reference/report-json.md").read_text("utf-8")
    documented = re.findall(r"^\| `counter_use\.?([\w.]*)` \|", page, re.MULTILINE)
    assert set(documented) == keys
    assert told["totals"][FAULTS] >= 50_000
    console = Console(file=io.StringIO(), width=120)
    render_report(profile, console=console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "page-faults" in text  # a column of zeros is left out
    assert "# touching" in text


@pytest.mark.parametrize(
    ("level", "error", "words"),
    [
        ("3", errno.EACCES, "perf_event_paranoid is 3"),
        ("4", errno.EPERM, "perf_event_paranoid is 4"),
        ("2", errno.EACCES, "kernel.perf_event_paranoid=1"),
        ("2", errno.EPERM, "seccomp"),
        ("2", errno.ENOENT, "PMU"),
        ("2", errno.EMFILE, "ulimit -n"),
        ("2", errno.E2BIG, os.strerror(errno.E2BIG)),
    ],
)
def test_each_refusal_says_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, level: str, error: int, words: str
) -> None:
    (tmp_path / "level").write_text(level, encoding="ascii")
    monkeypatch.setattr(counters, "_PARANOID_FILE", tmp_path / "level")
    reason = counters._refusals([("cycles", error, False), ("instructions", error, False)])
    assert reason.startswith("cycles, instructions: ")
    assert words in reason


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(counters._paranoid() != 2, reason="perf_event_paranoid is not 2")
def test_an_ordinary_user_counts_outside_the_kernel_only() -> None:
    program = """
import json, os
from deepcontext import _native
from tests.profiled import profiled
os.setresuid(65534, 65534, 65534)
print(json.dumps(_native.ask_for_perf_events(["page-faults", "context-switches"])))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    faults, switches = json.loads(done.stdout)
    assert faults in (["page-faults", 0, True], ["page-faults", errno.EPERM, True])
    assert switches[1] in {errno.EACCES, errno.EPERM}


def test_a_counter_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        errors.UserError, match="option counters: no counter 'flops'; known are cycles"
    ):
        deepcontext.start(counters=["flops"])
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", "profile", "--counters", "flops", "-c", "pass"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.returncode == 2
    assert "page-faults" in done.stderr


def test_counters_without_samples_are_refused() -> None:
    with pytest.raises(errors.EnvironmentProblem, match="--cpu-rate"):
        Counters().start(SessionOptions(cpu_rate=0, counters=("page-faults",)))
