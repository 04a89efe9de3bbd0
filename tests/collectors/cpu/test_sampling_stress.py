"""The sampler against programs that are hard to sample: they behave as without it, byte for byte.

Seconds each by default; the soak runs everything for half an hour at ten times the usual rate.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries import time_between_operators

if TYPE_CHECKING:
    from pathlib import Path

# The sampler starts before the run is timed and stops after it: milliseconds, more on a full machine.
STARTING_NS = 2e8
PROGRAMS = {
    "threads": """
import threading
def work(number):
    total = 0
    for i in range(300):
        total += sum(range(i))
        if i % 50 == 0:
            time.sleep(0.001)
    results.append(total)
for _ in range(ROUNDS):
    results = []
    threads = [threading.Thread(target=work, args=(n,)) for n in range(200)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(results) == 200 and len(set(results)) == 1
""",
    "short threads": """
import threading
done = []
for n in range(400 * ROUNDS):
    thread = threading.Thread(target=lambda: done.append(sum(range(500))))
    thread.start()
    thread.join()
assert len(done) == 400 * ROUNDS
""",
    "forks": """
import os, warnings
warnings.simplefilter("error")
for n in range(60 * ROUNDS):
    child = os.fork()
    if not child:
        sum(range(20_000))
        os._exit(n % 7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == n % 7
""",
    "processes": """
import subprocess, sys
for n in range(4 * ROUNDS):
    code = "import signal, sys; sys.exit(signal.getsignal(signal.SIGURG) != signal.SIG_DFL)"
    assert subprocess.run([sys.executable, "-S", "-c", code]).returncode == 0
    assert subprocess.run(["true"], preexec_fn=lambda: None).returncode == 0
""",
    "own timers": """
import signal
hits = {signal.SIGPROF: 0, signal.SIGALRM: 0, signal.SIGVTALRM: 0}
def on(number, frame):
    hits[number] += 1
for number, timer in (
    (signal.SIGPROF, signal.ITIMER_PROF),
    (signal.SIGALRM, signal.ITIMER_REAL),
    (signal.SIGVTALRM, signal.ITIMER_VIRTUAL),
):
    signal.signal(number, on)
    signal.setitimer(timer, 0.004, 0.004)
end = time.thread_time() + 0.8 * ROUNDS
while time.thread_time() < end:
    sum(range(5_000))
for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL, signal.ITIMER_VIRTUAL):
    signal.setitimer(timer, 0)
assert min(hits.values()) > 50 * ROUNDS, hits
""",
    "blocked signals": """
import signal
signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
end = time.thread_time() + 0.5 * ROUNDS
while time.thread_time() < end:
    sum(range(5_000))
pending = signal.sigpending()
assert not pending - {signal.SIGURG}, pending
""",
    "generators and exceptions": """
def inner(n):
    for i in range(n):
        yield i
def outer(n):
    yield from inner(n)
    raise ValueError(n)
for n in range(4_000 * ROUNDS):
    try:
        for _ in outer(n % 40): pass
    except ValueError as error:
        assert error.args == (n % 40,)
""",
    "asyncio": """
import asyncio
async def leaf(n):
    await asyncio.sleep(0)
    return sum(range(n))
async def middle(n):
    return sum(await asyncio.gather(*(leaf(n) for _ in range(20))))
async def main():
    for n in range(150 * ROUNDS):
        assert await middle(n % 300) == 20 * sum(range(n % 300))
asyncio.run(main())
""",
    "deep recursion": """
import sys
sys.setrecursionlimit(12_000)
def down(n):
    return down(n - 1) + 1 if n else 0
for _ in range(120 * ROUNDS):
    assert down(10_000) == 10_000
""",
    "code that dies": """
for n in range(6_000 * ROUNDS):
    space = {}
    exec(f"def f(x):\\n    return sum(range(x)) + {n}\\nvalue = f(200)", space)
    assert space["value"] == 19_900 + n
""",
    "greenlets": """
import greenlet
def body(n):
    for i in range(n):
        greenlet.getcurrent().parent.switch(sum(range(i)))
    return -1
for n in range(1_500 * ROUNDS):
    worker = greenlet.greenlet(body)
    seen = [worker.switch(n % 30)]
    while not worker.dead:
        seen.append(worker.switch())
    assert seen[-1] == -1 and len(seen) == n % 30 + 1
""",
    "files": """
import os
for _ in range(3_000 * ROUNDS):
    saved = os.dup(0)
    os.close(0)
    assert os.open(os.devnull, os.O_RDONLY) == 0  # the lowest number is free, always
    os.dup2(saved, 0)
    os.close(saved)
""",
}


def profile(folder: Path, program: str, *, rounds: int, rate: int) -> Profile:
    text = f"import time\nROUNDS = {rounds}\n{program}\nprint('over')\n"
    (folder / "program.py").write_text(text, encoding="utf-8")
    words = [sys.executable, "-X", "faulthandler", "-m", "deepcontext", "profile", "-q"]
    done = subprocess.run(
        [*words, "-o", "out.dcprof", "--cpu-rate", str(rate), "program.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", ""), done.stderr[-3000:]
    return Profile.load(folder / "out.dcprof")


def check_accounts(result: Profile) -> None:
    """Every sample is counted, and the main thread's time is charged whole."""
    main = time_between_operators.by_thread(result)[0]
    covered = main.operator_ns + main.sampled.cpu_ns + main.sampled.wait_ns
    assert 0.98 * result.run.wall_ns <= covered <= 1.02 * result.run.wall_ns + STARTING_NS
    trust = result.trust.counters
    assert trust["samples_running"] + trust["samples_waiting"] > 0
    assert trust["samples_lost"] <= 0.05 * trust["samples_running"] + 5, trust


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_runs_as_without_the_sampler(name: str, tmp_path: Path) -> None:
    if name == "greenlets":
        pytest.importorskip("greenlet")
    result = profile(tmp_path, PROGRAMS[name], rounds=1, rate=500)
    check_accounts(result)


@pytest.mark.soak
def test_half_an_hour_of_everything(tmp_path: Path) -> None:
    end = time.monotonic() + float(os.environ.get("SOAK_S", "1800"))
    while time.monotonic() < end:
        for name, program in PROGRAMS.items():
            if name != "greenlets":
                check_accounts(profile(tmp_path, program, rounds=4, rate=1000))
