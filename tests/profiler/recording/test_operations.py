"""Sessions under threads, forks, signal handlers, exceptions of handlers, and faults of collectors."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext import Profile, _native, errors
from deepcontext.collectors import ALL
from deepcontext.profiler.recording import operations
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.session_manager import SessionManager

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.profiler.recording.collector import Collector

# Checked in each program: what a session leaves in the process that it ran in.
CLEAN = """
import faulthandler, gc, os, random, signal, sys, threading, time
faulthandler.dump_traceback_later(110, exit=True)
import deepcontext
from deepcontext import _native, errors
PATH = "out.dcprof"
OPTIONS = dict(force=True, snapshot_interval=0.05)

def state():
    return (
        _native.is_recording(), signal.getsignal(signal.SIGURG), _native.note_gc in gc.callbacks,
        len(sys.meta_path), len(os.listdir("/proc/self/task")), threading.active_count(),
    )

def check_clean(before):
    try:
        deepcontext.stop()  # an exception at the very end of a start leaves the session to the program
    except errors.SessionError:
        pass
    assert state() == before, (state(), before)
    deepcontext.start(PATH, **OPTIONS)
    deepcontext.stop()
    assert os.path.getsize(PATH) > 0
"""


def run(folder: Path, program: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CLEAN + textwrap.dedent(program), *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


THREADS = """
import warnings
warnings.simplefilter("ignore")  # of forks beside threads
rounds, gate, unexpected = int(sys.argv[1]), threading.Barrier(8), []
counts = {"started": 0, "refused": 0}
lock = threading.Lock()

def count(what):
    with lock:
        counts[what] += 1

def work(number):
    for _ in range(rounds):
        gate.wait()
        try:
            if number < 4:
                with deepcontext.profile(None) as session:
                    count("started")
                    deepcontext.step()
            elif number == 4:
                deepcontext.stop()
            elif number == 5:
                session = deepcontext._MANAGER.session
                with deepcontext.scope("x"):
                    if session: session.snapshot()
            elif number == 6:
                child = os.fork()
                if child == 0: os._exit(0)
                os.waitpid(child, 0)
            else:
                deepcontext._MANAGER.session, deepcontext.Profile, deepcontext.__version__
        except errors.SessionError:
            count("refused")
        except BaseException as error:
            unexpected.append(repr(error))

threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
faulthandler.cancel_dump_traceback_later()
faulthandler.dump_traceback_later(60 + rounds, exit=True)
for t in threads: t.start()
for t in threads: t.join()
faulthandler.cancel_dump_traceback_later()
assert not unexpected, unexpected[:5]
assert counts["started"] and counts["refused"], counts
assert not _native.is_recording()
"""


def test_two_threads_that_start_at_once_get_one_session(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        gate, seen = threading.Barrier(2), []
        def one(name):
            gate.wait()
            try:
                deepcontext.start(name)
                seen.append("started")
            except errors.SessionError:
                seen.append("refused")
        threads = [threading.Thread(target=one, args=(n,)) for n in ("a.dcprof", "b.dcprof")]
        for t in threads: t.start()
        for t in threads: t.join()
        assert sorted(seen) == ["refused", "started"], seen
        deepcontext.stop()
        """,
    )


def test_eight_threads_start_stop_query_and_fork(tmp_path: Path) -> None:
    run(tmp_path, THREADS, 15)


@pytest.mark.soak
def test_eight_threads_a_thousand_times(tmp_path: Path) -> None:
    run(tmp_path, THREADS, 1000)


# Each round, a signal comes at a random moment of what the main thread does.
SIGNALS = """
rounds, kind = int(sys.argv[1]), sys.argv[2]
faulthandler.cancel_dump_traceback_later()
faulthandler.dump_traceback_later(60 + 2 * rounds, exit=True)
choose = random.Random(1)
deepcontext.start(PATH, **OPTIONS)
deepcontext.stop()
before = state()
CALLS = {
    "start": lambda: deepcontext.start(PATH, **OPTIONS),
    "stop": lambda: deepcontext.stop(),
    "snapshot": lambda: deepcontext._MANAGER.session and deepcontext._MANAGER.session.snapshot(),
    "step": lambda: deepcontext.step(),
    "scope": lambda: deepcontext.scope("s").__enter__(),
    "block": lambda: deepcontext.profile(None).__enter__(),
    "decorated": lambda: decorated(),
}

@deepcontext.profile(PATH, force=True)
def decorated():
    pass

def handler(*_):
    if kind == "interrupt" and is_armed:
        raise KeyboardInterrupt
    try:
        CALLS.get(kind, bool)()
    except errors.SessionError:
        pass

signal.signal(signal.SIGALRM, handler)
for _ in range(rounds):
    try:
        is_armed = True
        signal.setitimer(signal.ITIMER_REAL, choose.expovariate(1 / 0.01) + 1e-6)
        for name in ("start", "snapshot", "step", "stop", "decorated"):
            CALLS[name]()
        is_armed = False
    except (KeyboardInterrupt, errors.SessionError):
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    check_clean(before)
"""


@pytest.mark.parametrize(
    "kind", ["interrupt", "start", "stop", "snapshot", "step", "scope", "block", "decorated"]
)
def test_a_signal_handler_at_random_moments(tmp_path: Path, kind: str) -> None:
    run(tmp_path, SIGNALS, 6, kind)


@pytest.mark.soak
@pytest.mark.parametrize(
    "kind", ["interrupt", "start", "stop", "snapshot", "step", "scope", "block", "decorated"]
)
def test_a_signal_handler_at_a_thousand_moments(tmp_path: Path, kind: str) -> None:
    run(tmp_path, SIGNALS, 1000, kind)


@pytest.mark.parametrize("call", ["start", "snapshot", "stop"])
def test_a_handler_that_stops_and_exits_leaves_a_profile(tmp_path: Path, call: str) -> None:
    """The signal comes inside the call: a collector sends it to the process."""
    output = run(
        tmp_path,
        """
        from deepcontext.collectors.python.frames import PythonFrames
        from deepcontext.profiler.recording.options import SessionOptions

        call, manager, sent = sys.argv[1], deepcontext._MANAGER, []
        def handler(*_):
            try:
                manager.stop("SIGTERM")
            except errors.SessionError as error:
                assert call == "stop", error
            print(manager.session, flush=True)
            os._exit(0)
        signal.signal(signal.SIGTERM, handler)

        class Ending(PythonFrames):
            name = "ending"
            def end(self, where):
                if where == call and not sent:
                    sent.append(where)
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(0.1)
            def start(self, options): self.end("start")
            def stop(self): self.end("stop")
            def settle(self): self.end("snapshot")

        session = manager.start(PATH, SessionOptions.of({"snapshot_interval": 0}), [PythonFrames, Ending])
        session.snapshot()
        manager.stop()
        """,
        call,
    )
    assert output == "None\n"
    Profile.load(tmp_path / "out.dcprof")


WHERE = ("start", "settle", "outcome", "sections", "stop")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("number", range(len(ALL)))
def test_a_collector_that_raises_costs_only_itself(
    tmp_path: Path, number: int, where: str, error: type[BaseException]
) -> None:
    path = tmp_path / "out.dcprof"
    manager = SessionManager()
    makers: list[Callable[[], Collector]] = list(ALL)

    def broken() -> Collector:
        collector = ALL[number]()
        original = getattr(collector, where)

        def fail(*arguments: Any) -> None:
            original(*arguments)
            raise error("planted")

        setattr(collector, where, fail)
        return collector

    makers[number] = broken
    hooks = list(sys.meta_path)
    is_raised = error is KeyboardInterrupt  # as in a process that may have no more threads
    options = SessionOptions.of({"snapshot_interval": 0})
    try:
        manager.start(path, options, makers)
        capture = manager.stop()
    except KeyboardInterrupt:
        assert is_raised
        if manager.session is not None:
            with pytest.raises(KeyboardInterrupt):
                manager.stop()
    else:
        assert not is_raised
        outcome = capture.outcomes[ALL[number]().name]
        assert "planted" in outcome.reason or where == "stop"
    assert manager.session is None
    assert not _native.is_recording()
    assert list(sys.meta_path) == hooks
    if not (is_raised and where == "start"):
        Profile.load(path)
    manager.start(path, options, ALL)
    manager.stop()
    Profile.load(path)


def test_a_call_from_inside_an_operation_is_refused() -> None:
    def nested() -> None:
        with pytest.raises(errors.SessionError, match="the profiler's own work led to this call"):
            deepcontext.stop()

    operations.run_exclusively(nested)


def test_operations_run_one_at_a_time_in_the_order_of_their_calls() -> None:
    seen: list[int] = []
    gate = threading.Event()

    def first() -> None:
        gate.wait(20)
        seen.append(0)

    def call(number: int) -> threading.Thread:
        work = first if number == 0 else lambda: seen.append(number)
        thread = threading.Thread(target=operations.run, args=(work,))
        thread.start()
        while not _native.waits_for_operation(thread.ident or 0):
            pass
        return thread

    threads = [call(number) for number in range(5)]
    assert _native.try_operation(lambda: "here") is None
    gate.set()
    for thread in threads:
        thread.join()
    assert seen == [0, 1, 2, 3, 4]
    assert _native.try_operation(lambda: "here") == "here"


def test_threads_that_an_operation_starts_for_the_program_have_its_name_and_signals() -> None:
    def look() -> tuple[str, str]:
        task = Path("/proc/thread-self")
        blocked = next(s for s in (task / "status").read_text().splitlines() if "SigBlk" in s)
        return (task / "comm").read_text(), blocked

    from deepcontext.collectors.shared.internal_thread import (
        run_in_internal_thread,
    )

    assert operations.run(look)[0] == "deepcontext\n"
    assert operations.run(lambda: run_in_internal_thread(look)) == look()


@pytest.mark.parametrize("where", ["before", "after_in_parent"])
@pytest.mark.parametrize("call", ["start", "stop", "snapshot"])
def test_a_handler_that_interrupts_a_fork_is_not_kept_waiting(
    tmp_path: Path, where: str, call: str
) -> None:
    output = run(
        tmp_path,
        """
        where, call = sys.argv[1:]
        def handler(*_):
            if call == "start": deepcontext.start(PATH, **OPTIONS)
            elif call == "stop": deepcontext.stop()
            else: deepcontext._MANAGER.session.snapshot()
            print(call, flush=True)
        signal.signal(signal.SIGTERM, handler)
        os.register_at_fork(**{where: lambda: os.kill(os.getpid(), signal.SIGTERM)})
        before = state()
        if call != "start": deepcontext.start(PATH, **OPTIONS)
        else:
            deepcontext.start(PATH, **OPTIONS)  # the profiler's hooks of forks come first
            deepcontext.stop()
        child = os.fork()
        if child == 0: os._exit(3)
        assert os.waitpid(child, 0)[1] == 3 << 8
        assert call == "stop" or deepcontext._MANAGER.session is not None
        check_clean(before)
        """,
        where,
        call,
    )
    assert output == f"{call}\n"


def test_a_fork_that_waits_for_the_handler_of_another_thread_goes_on(tmp_path: Path) -> None:
    """The fork's hook wants a lock that the main thread holds below its signal handler."""
    run(
        tmp_path,
        """
        held, is_forking = threading.Lock(), threading.Event()
        def wait_in_fork():
            is_forking.set()
            with held: pass
        def handler(*_):
            is_forking.wait()
            deepcontext.stop()
        def fork():
            child = os.fork()
            if child == 0: os._exit(0)
            os.waitpid(child, 0)
        import warnings
        warnings.simplefilter("ignore")  # of forks beside threads
        os.register_at_fork(before=wait_in_fork)
        deepcontext.start(PATH, **OPTIONS)
        signal.signal(signal.SIGTERM, handler)
        thread = threading.Thread(target=fork)
        with held:
            thread.start()
            is_forking.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0)
        thread.join()
        assert deepcontext._MANAGER.session is None
        """,
    )


# Says which modules are imported in operations: a handler may have interrupted their import.
IMPORTS = """
from deepcontext.profiler.recording import operations
looked = []

class Finder:
    def find_spec(self, name, path=None, target=None):
        if threading.get_ident() != main: looked.append(name)

main = threading.get_ident()
sys.meta_path.insert(0, Finder())

@deepcontext.profile(PATH, force=True)
def decorated():
    pass

decorated()
with deepcontext.profile(PATH, force=True) as session:
    session.snapshot()
    with deepcontext.scope("x"):
        deepcontext.step()
    FRAMEWORK
    session.snapshot()
for path in ("/no/such/folder/x.dcprof", "/proc/x.dcprof"):
    try:
        deepcontext.start(path)
    except errors.DeepContextError:
        pass
assert not looked, looked
"""


@pytest.mark.parametrize(
    "framework",
    [
        "pass",
        "import torch; torch.nn.Linear(2, 2)(torch.ones(2)).sum().backward()",
        "import jax; jax.jit(lambda a: a + 1)(1.0)",
    ],
    ids=["none", "torch", "jax"],
)
def test_operations_import_no_module(tmp_path: Path, framework: str) -> None:
    run(tmp_path, IMPORTS.replace("FRAMEWORK", framework))


# At each import of the profiler's first use, a signal handler calls each function.
INTERRUPTED = """
def handler(*_):
    deepcontext.step()
    with deepcontext.scope("x"): pass
    for call in (lambda: deepcontext.start(None), deepcontext.stop):
        try: call()
        except errors.SessionError: pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("deepcontext.") and name not in seen:
            seen.add(name)
            os.kill(os.getpid(), signal.SIGTERM)

seen = set()
signal.signal(signal.SIGTERM, handler)
sys.meta_path.insert(0, Finder())
USE
sys.meta_path.pop(0)
assert len(seen) > 1, seen
"""


@pytest.mark.parametrize(
    "use", ["deepcontext.step()", "deepcontext.scope('x')", "deepcontext.profile(PATH)"]
)
def test_a_handler_may_call_everything_while_the_profiler_is_imported(
    tmp_path: Path, use: str
) -> None:
    run(tmp_path, INTERRUPTED.replace("USE", use))


def test_a_handler_that_interrupts_the_import_of_numpy_gets_no_profile_but_a_file(
    tmp_path: Path,
) -> None:
    output = run(
        tmp_path,
        """
        def handler(*_):
            try: deepcontext.stop()
            except errors.SessionError as error: print(error)
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "numpy.version": os.kill(os.getpid(), signal.SIGTERM)
        signal.signal(signal.SIGTERM, handler)
        sys.meta_path.insert(0, Finder())
        deepcontext.start(PATH, **OPTIONS)
        import numpy
        """,
    )
    assert "/out.dcprof, but cannot be read here" in output
    Profile.load(tmp_path / "out.dcprof")
