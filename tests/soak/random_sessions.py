"""Sessions that start and stop at random, with random options, beside everything a program does.

Run by `test_random_sessions.py`: ``random_sessions.py SECONDS SEED FOLDER``. Prints what it did.
After each session: its profile can be read, what it charged adds up, what was lost is in the trust
report, no thread of the profiler is left and signals are as they were.
"""

from __future__ import annotations

import faulthandler
import json
import random
import resource
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import program_work

import deepcontext
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries import time_between_operators

try:
    import torch
except ImportError:
    torch = None

if TYPE_CHECKING:
    from collections.abc import Callable

# Nothing takes that long, however busy the machine is: a hang shows all stacks and ends the soak.
HANG_S = 300.0
COUNTED = "counted"
INTERNAL_THREAD_NAME = "deepcontext"
_TENSOR_BYTES = 4 * 1031


@dataclass
class Soak:
    """The threads of the program under test, and what happened."""

    seed: int
    folder: Path
    end: float
    random: random.Random = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    failures: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    timer_hits: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def work(self, what: Callable[[], None]) -> None:
        """Do one thing until all is over."""
        while not self.stopping.is_set() and not self.failures:
            try:
                what()
            except BaseException:  # noqa: BLE001  reported at the end
                self.failures.append(f"{what.__name__}:\n{traceback.format_exc()}")
            self.done[what.__name__] += 1
            self.stopping.wait(0.02)  # sessions are to begin and end all the time

    def on_timer(self, number: int, frame: object) -> None:
        """Count the program's own SIGPROF."""
        self.timer_hits += 1


def main(seconds: float, seed: int, folder: Path) -> int:
    sys.setrecursionlimit(10_000)
    threading.stack_size(64 << 20)  # sanitizers need several times the stack
    if torch is not None:
        torch.set_num_threads(1)
        program_work.torch_training()
    if program_work.has_jax:
        program_work.jax_training()
    soak = Soak(seed, folder, time.monotonic() + seconds)
    signal.signal(signal.SIGPROF, soak.on_timer)
    signal.setitimer(signal.ITIMER_PROF, 0.007, 0.007)
    threads = [
        threading.Thread(target=soak.work, args=(what,), name=what.__name__)
        for what in program_work.works()
    ]
    for thread in threads:
        thread.start()
    try:
        while time.monotonic() < soak.end and not soak.failures:
            faulthandler.dump_traceback_later(HANG_S, exit=True)
            one_session(soak)
            soak.done["sessions"] += 1
    except BaseException:  # noqa: BLE001  reported below
        soak.failures.append(traceback.format_exc())
    soak.stopping.set()
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    for thread in threads:
        thread.join()
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_PROF, 0)
    report = {
        "seed": seed,
        "done": dict(soak.done),
        "timer_hits": soak.timer_hits,
        "hangs_in_sanitizer": program_work.hangs_in_sanitizer,
        "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "failures": soak.failures,
    }
    print(json.dumps(report))
    return 1 if soak.failures else 0


# -- one session


def one_session(soak: Soak) -> None:
    """Start, do things, stop, check."""
    time.sleep(soak.random.choice((0, 0, 0.001, 0.02)))
    options = _options(soak.random)
    is_taken = soak.random.random() < 0.05  # the program has its own use for the sampler's signal
    if is_taken:
        signal.signal(signal.SIGURG, lambda number, frame: None)
    before = _signals()
    path = soak.folder / "out.dcprof" if soak.random.random() < 0.7 else None
    begun_ns = time.monotonic_ns()
    deepcontext.start(path, **options)
    turns = _exact_work(soak.random)
    _vary(soak, path)
    profile = _stop(soak.random)
    elapsed_ns = time.monotonic_ns() - begun_ns
    _wait_for_internal_threads()
    assert _signals() == before, (options, before, _signals())
    if is_taken:
        signal.signal(signal.SIGURG, signal.SIG_DFL)
    if path is not None:
        assert len(Profile.load(path).tree) == len(profile.tree)
        path.unlink()
    _check_exact(profile, turns, options)
    _check_accounts(soak, profile, elapsed_ns, options)
    soak.done["samples"] += profile.trust.counters.get("samples_running", 0)
    soak.done["samples"] += profile.trust.counters.get("samples_waiting", 0)


def _options(choice: random.Random) -> dict[str, Any]:
    return {
        "cpu_rate": choice.choice((0, 100, 1000, 1000)),
        "memory": choice.random() < 0.5,
        "native": choice.random() < 0.5,
        "shapes": choice.random() < 0.3,
        "jax_exact": choice.random() < 0.2,
        "snapshot_interval": choice.choice((0, 0.02, 0.2, 5.0)),
        "counters": choice.choice(((), ("page-faults", "context-switches"))),
        "node_limit": choice.choice((1_000_000, 1_000_000, 3000)),
    }


def _exact_work(choice: random.Random) -> int:
    """Do what a profile must show to the last call and byte; how often."""
    turns = choice.randrange(40)
    with deepcontext.scope(COUNTED):
        for _ in range(turns):
            if torch is not None:
                torch.empty(_TENSOR_BYTES // 4)
    return turns


def _vary(soak: Soak, path: Path | None) -> None:
    """Spend the session's time on one or the other."""
    end = time.monotonic() + soak.random.choice((0, 0, 0.01, 0.05, 0.3, 1.0))
    actions = (
        program_work.plain_python,
        program_work.deep_recursion,
        program_work.dying_code,
        program_work.waiting,
        lambda: _fork_storm(soak),
        lambda: None if path is None else _session().snapshot(),
    )
    while time.monotonic() < end and not soak.failures:
        soak.random.choice(actions)()


def _fork_storm(soak: Soak) -> None:
    for _ in range(soak.random.choice((1, 3, 10))):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        program_work.fork_once(with_session=soak.random.random() < 0.3)
        soak.done["forks"] += 1


def _session() -> deepcontext.Session:
    session = deepcontext._MANAGER.session
    assert session is not None
    return session


def _stop(choice: random.Random) -> Profile:
    """Stop the session, sometimes in another thread than the one that has started it."""
    if choice.random() < 0.7:
        return deepcontext.stop()
    stopped: list[Profile] = []
    thread = threading.Thread(target=lambda: stopped.append(deepcontext.stop()))
    thread.start()
    thread.join()
    return stopped[0]


# -- what must hold


def _internal_threads() -> list[str]:
    names = []
    for folder in Path("/proc/self/task").iterdir():
        try:
            names.append((folder / "comm").read_text(encoding="utf-8").strip())
        except OSError:  # it has ended
            continue
    return [name for name in names if name == INTERNAL_THREAD_NAME]


def _wait_for_internal_threads() -> None:
    """The kernel lists a thread for a moment after it has been joined."""
    end = time.monotonic() + HANG_S / 4
    while _internal_threads():
        assert time.monotonic() < end, "a thread of the profiler's outlives its session"
        time.sleep(0.001)


def _signals() -> list[str]:
    """The signals that are caught and ignored, as the kernel has them."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return [line for line in status.splitlines() if line.startswith(("SigCgt", "SigIgn"))]


def _check_exact(profile: Profile, turns: int, options: dict[str, Any]) -> None:
    if torch is None or profile.trust.counters["contexts_refused"]:
        return
    below = profile.query().under(COUNTED).kind("operator").name("aten::empty*")
    counts = profile.counts("call_duration_ns")
    assert sum(int(counts[node]) for node in below.nodes()) == turns, options
    if options["memory"] and turns:
        assert below.total("alloc_bytes") == turns * _TENSOR_BYTES, options


def _check_accounts(soak: Soak, profile: Profile, elapsed_ns: int, options: dict[str, Any]) -> None:
    """Every sample is counted, and the time of threads that live on is charged whole."""
    if not options["cpu_rate"]:
        assert "samples_running" not in profile.trust.counters
        return
    trust = profile.trust
    seen = trust.counters["samples_running"] + trust.counters["samples_waiting"]
    missed = trust.counters["samples_lost"] + trust.counters["samples_unanswered"]
    is_told = any("samples could not be attributed" in note for note in trust.notes)
    assert is_told == (missed > 0.02 * (seen + missed)), (missed, seen, trust.notes)
    soak.done["samples lost"] += trust.counters["samples_lost"]
    soak.done["samples unanswered"] += trust.counters["samples_unanswered"]
    if trust.counters["contexts_refused"]:
        return  # some operators have no node, so their time is not to be seen
    # The clock of operators is the processor's, measured against the kernel's while it runs.
    slack_ns = 2_000_000 + 0.01 * elapsed_ns
    rows = {row.name: row for row in time_between_operators.by_thread(profile)}
    for name in ("MainThread", "plain_python", "waiting", "dying_code"):
        assert name in rows, (name, sorted(rows), elapsed_ns, options)
        row = rows[name]
        covered = row.operator_ns + row.sampled.cpu_ns + row.sampled.wait_ns
        low, high = profile.run.wall_ns - slack_ns, elapsed_ns + slack_ns
        assert low <= covered <= high, (name, low, covered, high, row, options)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
