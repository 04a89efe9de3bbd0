"""However a program ends, it ends as under plain python, and a profile is left."""

from __future__ import annotations

import signal
from typing import Any

import pytest

ENDS: dict[str, tuple[int, str]] = {
    "normal end": (0, "print('done')"),
    "empty program": (0, ""),
    "sys.exit(3)": (3, "import sys; sys.exit(3)"),
    "sys.exit('message')": (1, "import sys; print('out'); sys.exit('message')"),
    "sys.exit(None)": (0, "import sys; sys.exit(None)"),
    "sys.exit(256 + 7)": (7, "import sys; sys.exit(256 + 7)"),
    "raise SystemExit": (4, "raise SystemExit(4)"),
    "uncaught exception": (
        1,
        """
def inner():
    raise ValueError('broken')

def outer():
    inner()

outer()
""",
    ),
    "chained exception": (
        1,
        """
try:
    {}['a']
except KeyError as error:
    raise RuntimeError('b') from error
""",
    ),
    "own excepthook": (
        1,
        """
import sys
sys.excepthook = lambda kind, value, trace: print('hook', kind.__name__, value)
raise ValueError('seen')
""",
    ),
    "exception in a thread": (
        0,
        """
import threading
def work():
    raise ValueError('in a thread')
threading.excepthook = lambda args: print('hook', args.exc_value)
thread = threading.Thread(target=work)
thread.start()
thread.join()
print('end')
""",
    ),
    "raised KeyboardInterrupt": (-signal.SIGINT, "raise KeyboardInterrupt"),
    "raised in atexit": (
        0,
        """
import atexit

def work():
    raise ValueError('late')

atexit.register(work)
""",
    ),
    "atexit order": (
        0,
        """
import atexit, sys
atexit.register(print, 'first registered')
atexit.register(lambda: print('to stderr', file=sys.stderr))
atexit.register(print, 'last registered')
""",
    ),
    "threads that run on": (
        0,
        """
import threading, time
def work():
    time.sleep(0.3)
    print('thread ends')
threading.Thread(target=work).start()
print('main ends')
""",
    ),
    "daemon threads": (
        0,
        """
import threading, time
def work():
    while True: time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()
print('main ends')
""",
    ),
    "__del__ at exit": (
        0,
        """
import gc
class Late:
    def __del__(self): print('deleted', self.name)
held = Late(); held.name = 'global'
cycle = Late(); cycle.name = 'cycle'; cycle.self = cycle; del cycle
print(gc.isenabled(), gc.get_threshold())
""",
    ),
    "open generators": (
        0,
        """
def numbers():
    try:
        yield from range(3)
    finally:
        print('closed')
held = numbers(); print(next(held)); print(list(numbers()))
""",
    ),
    "asyncio": (
        0,
        """
import asyncio
async def main():
    await asyncio.sleep(0.01)
    return 7
print(asyncio.run(main()))
""",
    ),
    "output without a last newline": (0, "print('no newline', end='')"),
    "stdout closed by the program": (0, "import sys; print('a', flush=True); sys.stdout.close()"),
    "stderr closed by the program": (0, "import os; os.close(2); print('on')"),
    "another file on descriptor 2": (
        0,
        """
import os
os.close(2)
print(os.open('data.txt', os.O_RDWR | os.O_CREAT | os.O_TRUNC))
import atexit
os.write(2, b'mine')
""",
    ),
    "standard streams replaced": (
        0,
        """
import io, sys
sys.stdout = io.StringIO()
sys.stderr = io.StringIO()
print('gone')
""",
    ),
    "folder left and deleted": (
        0,
        """
import os, tempfile
folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder); print('gone')
""",
    ),
}

# Here no exit handler runs, so the last snapshot is left.
CRASHES: dict[str, tuple[int, str]] = {
    "os._exit": (4, "os._exit(4)"),
    "os.abort": (-signal.SIGABRT, "os.abort()"),
    "segmentation fault": (-signal.SIGSEGV, "import ctypes; ctypes.string_at(0)"),
    "SIGKILL to itself": (-signal.SIGKILL, "os.kill(os.getpid(), 9)"),
    "os.execv": (5, "os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(5)'])"),
}


@pytest.mark.parametrize(("status", "source"), ENDS.values(), ids=ENDS)
def test_program_ends_the_same(same_as_python: Any, status: int, source: str) -> None:
    profile = same_as_python(source, status=status)
    assert profile.run.exit_reason != "snapshot"


def test_program_with_a_syntax_error(same_as_python: Any) -> None:
    same_as_python.without_beginning("print('never')\ndef (:\n", status=1)


def test_file_of_the_program_on_descriptor_2_gets_no_line_of_the_profiler(
    same_as_python: Any,
) -> None:
    same_as_python(ENDS["another file on descriptor 2"][1])
    assert (same_as_python.folder / "data.txt").read_text() == "mine"


@pytest.mark.parametrize(("status", "source"), CRASHES.values(), ids=CRASHES)
def test_crash_leaves_the_last_snapshot(same_as_python: Any, status: int, source: str) -> None:
    start = "import os, sys, time\nprint('starts', flush=True)\ntime.sleep(0.4)\n"
    profile = same_as_python(start + source + "\n", status=status)
    assert profile.run.exit_reason == "snapshot"


def test_program_that_ends_while_a_snapshot_is_due_does_not_hang(same_as_python: Any) -> None:
    # The end waits for the snapshot, and the snapshot must not wait for the end.
    source = """
import sys, time
if "deepcontext" in sys.modules:
    import deepcontext
    deepcontext.stop()
    for round in range(100):
        deepcontext.start(sys.argv[1], snapshot_interval=0.01)
        end = time.perf_counter() + 0.008 + round % 20 * 0.0003
        while time.perf_counter() < end: pass
        deepcontext._MANAGER.stop("exit")
    deepcontext.start(sys.argv[1])
"""
    same_as_python(source, words=["program.py", str(same_as_python.profile_path)])


def test_faulthandler_prints_the_same_stack(same_as_python: Any) -> None:
    same_as_python(
        "import ctypes, faulthandler, time\n"
        "faulthandler.enable()\ntime.sleep(0.4)\nctypes.string_at(0)\n",
        status=-signal.SIGSEGV,
        normalize=_without_extension_modules,
    )


def _without_extension_modules(stderr: str) -> str:
    # The list of loaded extension modules names the profiler's.
    lines = [line for line in stderr.splitlines() if not line.startswith("Extension modules:")]
    # The stack of the profiler's thread is shown if it is writing a snapshot; the program has one.
    blocks = "\n".join(lines).strip().split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("Thread "))


def test_output_into_a_closed_pipe_fails_the_same(same_as_python: Any) -> None:
    def close_stdout(process: Any) -> None:
        process.stdout.close()
        process.stdout = None

    same_as_python(
        "import sys, time\n"
        "print('ready', flush=True)\ntime.sleep(0.6)\nsys.stdout.write('x' * 1_000_000)\n",
        status=1,
        action=close_stdout,
    )


def test_unflushed_output_into_a_closed_pipe_fails_the_same(
    same_as_python: Any,
) -> None:
    def close_stdout(process: Any) -> None:
        process.stdout.close()
        process.stdout = None

    same_as_python(
        "import time\nprint('ready', flush=True)\ntime.sleep(0.6)\nprint('held back')\n",
        status=120,
        action=close_stdout,
    )
