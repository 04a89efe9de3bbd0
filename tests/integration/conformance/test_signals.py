"""A signal from outside does to the program what it does under plain python."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

READY = "print('ready', flush=True)\n"
# Each is deadly while the program is in it, with and without the GIL.
BLOCKED: dict[str, str] = {
    "sleep": "import time\n" + READY + "time.sleep(60)\n",
    "python loop": READY + "while True: pass\n",
    "lock": "import threading\nlock = threading.Lock()\nlock.acquire()\n"
    + READY
    + "lock.acquire()\n",
    "thread join": (
        "import threading, time\n"
        "thread = threading.Thread(target=time.sleep, args=(60,))\nthread.start()\n"
        + READY
        + "thread.join()\n"
    ),
    "at exit, waiting for a thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n" + READY
    ),
    "C call": "import ctypes\n" + READY + "ctypes.CDLL(None).sleep(60)\n",
    "read from stdin": "import sys\n" + READY + "sys.stdin.read()\n",
    "C call that holds the GIL": "import ctypes\n" + READY + "ctypes.PyDLL(None).sleep(60)\n",
}
USER_HANDLERS: dict[str, tuple[int, str]] = {
    "handler that exits": (9, "lambda number, frame: sys.exit(9)"),
    "handler that goes on": (0, "lambda number, frame: print('handled', number)"),
    "ignored": (0, "signal.SIG_IGN"),
    "default set again": (-signal.SIGTERM, "signal.SIG_DFL"),
}
RUNNING = (
    READY
    + """\
import time
end = time.monotonic() + 0.5
while time.monotonic() < end: time.sleep(0.05)
print('went on')
"""
)


def send(number: int) -> Callable[[Any], None]:
    return lambda process: process.send_signal(number)


@pytest.mark.parametrize("source", BLOCKED.values(), ids=BLOCKED)
def test_sigterm_kills_and_leaves_the_last_snapshot(same_as_python: Any, source: str) -> None:
    # The signal of a sample may end sleep() of the C library early (decision 41).
    options = ("--cpu-rate", "0") if "sleep(60)" in source and "ctypes" in source else ()
    profile = same_as_python(
        source, options=options, status=-signal.SIGTERM, action=send(signal.SIGTERM)
    )
    assert profile.run.exit_reason == "snapshot"


def test_sigterm_leaves_nothing_time_to_go_on(same_as_python: Any) -> None:
    # sleep() of the C library returns early when a signal handler has run; Python's does not. The
    # signal of a sample may do that as well (decision 41), so there are none here.
    for library in ("CDLL", "PyDLL"):
        same_as_python(
            f"import ctypes\n{READY}ctypes.{library}(None).sleep(60)\nprint('on', flush=True)\n",
            options=("--cpu-rate", "0"),
            status=-signal.SIGTERM,
            action=send(signal.SIGTERM),
        )


DEADLY = (
    signal.SIGHUP,
    signal.SIGKILL,
    signal.SIGUSR1,
    signal.SIGQUIT,
    signal.SIGALRM,
)


@pytest.mark.parametrize("number", DEADLY)
def test_other_deadly_signals_kill_and_leave_the_last_snapshot(
    same_as_python: Any, number: int
) -> None:
    profile = same_as_python(BLOCKED["sleep"], status=-number, action=send(number))
    assert profile.run.exit_reason == "snapshot"


def test_ctrl_c_raises_keyboard_interrupt(same_as_python: Any) -> None:
    source = "import time\ndef work():\n    time.sleep(60)\n" + READY + "work()\n"
    profile = same_as_python(source, status=-signal.SIGINT, action=send(signal.SIGINT))
    assert profile.run.exit_reason == "exception: KeyboardInterrupt"


def test_ctrl_c_that_the_program_catches(same_as_python: Any) -> None:
    same_as_python(
        "import time\n"
        "try:\n    " + READY + "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('stopped')\n    raise SystemExit(3)\n",
        status=3,
        action=send(signal.SIGINT),
    )


@pytest.mark.parametrize(("status", "handler"), USER_HANDLERS.values(), ids=USER_HANDLERS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_handler_of_the_program_is_the_one_that_counts(
    same_as_python: Any, number: int, status: int, handler: str
) -> None:
    expected = -number if handler == "signal.SIG_DFL" else status
    source = f"import signal, sys\nsignal.signal({number}, {handler})\n" + RUNNING
    same_as_python(source, status=expected, action=send(number))


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT"])
def test_signal_ignored_from_the_start_stays_ignored(same_as_python: Any, name: str) -> None:
    same_as_python(
        f"import signal\nprint(signal.getsignal(signal.SIG{name}))\n",
        prefix=["sh", "-c", f'trap "" {name}; exec "$@"', "sh"],
    )


def test_program_sees_the_dispositions_and_masks_of_plain_python(
    same_as_python: Any,
) -> None:
    same_as_python(
        "import signal\n"
        "print([(n, str(signal.getsignal(n))) for n in sorted(signal.valid_signals())])\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n",
        normalize=str,
    )


def test_sigterm_by_the_program_to_itself(same_as_python: Any) -> None:
    profile = same_as_python(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nprint('on', flush=True)\n",
        status=-signal.SIGTERM,
    )
    assert profile.run.exit_reason == "snapshot"


def test_sigterm_to_a_forked_child_kills_it_alone(same_as_python: Any) -> None:
    same_as_python(
        "import os, signal, time\n"
        "child = os.fork()\n"
        "if child == 0:\n    time.sleep(60)\n"
        "time.sleep(0.2)\n"
        "os.kill(child, signal.SIGTERM)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n",
    )


def test_sigterm_to_a_child_that_is_not_yet_out_of_fork_kills_it(same_as_python: Any) -> None:
    # What multiprocessing.Pool does to a worker that it has no work for.
    same_as_python(
        "import os, signal, time\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n        time.sleep(60)\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n",
    )


def test_sigchld_handler_of_the_program_is_called_for_its_children_only(
    same_as_python: Any,
) -> None:
    same_as_python(
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGCHLD, lambda number, frame: print('child ended'))\n"
        "subprocess.run([sys.executable, '-c', ''])\n",
    )
