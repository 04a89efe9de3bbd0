"""The sampler's signal and the program: what reaches the program or ends a wait is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.profiled import profiled

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile

_BURN = """
import ctypes, os, select, signal, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
"""
# Each prints how many signals that nobody sent it has seen.
_RECEIVERS = {
    "sigwait": """
seen = 0
for _ in range(60):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
    burn(0.01)
    time.sleep(0.03)  # a round sees what is pending
    seen += signal.sigtimedwait([signal.SIGURG], 0) is not None
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
    burn(0.004)
print(seen)
""",
    "handler before unblock": """
received = []
for _ in range(40):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
    burn(0.01)
    time.sleep(0.03)
    signal.signal(signal.SIGURG, lambda *_: received.append(1))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
    burn(0.01)
    signal.signal(signal.SIGURG, signal.SIG_DFL)
    burn(0.004)
print(len(received))
""",
}


def _profile(folder: Path, program: str) -> tuple[int, Profile]:
    options = ("-q", "--cpu-rate", "1000", "--snapshot-interval", "0")
    done = profiled(folder, _BURN + program, *options)
    return int(done.stdout), done.profile


@pytest.mark.parametrize("name", _RECEIVERS)
def test_a_program_that_blocks_the_signal_gets_none_that_is_not_told(
    name: str, tmp_path: Path
) -> None:
    """A signal on its way when the program blocks it cannot be taken back; the trust report counts it."""
    seen, profile = _profile(tmp_path, _RECEIVERS[name])
    told = profile.trust.counters["signals_astray"]

    assert seen <= told
    assert told <= 20, "asked although the thread blocks the signal"
    assert any("nobody else sent" in note for note in profile.trust.notes) == (told > 0)


def test_a_thread_that_loses_its_processor_while_it_answers_is_none_that_blocks_the_signal(
    tmp_path: Path,
) -> None:
    """Four processes on the thread's processor: it is often stopped inside the handler."""
    _, profile = _profile(
        tmp_path,
        """
import sys
from subprocess import Popen
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of this thread; the sampler's is free
others = [Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(4)]
burn(0.8)
for other in others:
    other.kill()
print(0)
""",
    )

    assert profile.trust.counters["signals_astray"] == 0


def test_a_flood_of_the_signal_does_no_harm(tmp_path: Path) -> None:
    """Signals of other processes, which are ignored by default, on the small stack of faulthandler."""
    _, profile = _profile(
        tmp_path,
        """
import faulthandler, sys
from subprocess import Popen
faulthandler.enable()
send = f"import os, sys\\nwhile True: os.kill(int(sys.argv[1]), {signal.SIGURG:d})"
others = [Popen([sys.executable, "-S", "-c", send, str(os.getpid())]) for _ in range(2)]
burn(0.8)
for other in others:
    other.kill()
print(0)
""",
    )

    assert profile.run.exit_reason == "exit"
    assert profile.trust.counters["samples_running"] > 0


def test_waits_that_the_signal_ends_are_counted(tmp_path: Path) -> None:
    """epoll_wait is never restarted; Python waits again, a C library has to."""
    seen, profile = _profile(
        tmp_path,
        """
libc = ctypes.CDLL(None, use_errno=True)
poll, events = libc.epoll_create1(0), ctypes.create_string_buffer(64)
ended = 0
end = time.monotonic() + 1.5
while time.monotonic() < end:
    ctypes.set_errno(0)
    libc.epoll_wait(poll, events, 1, 1)
    ended += ctypes.get_errno() == 4
    burn(0.0005)
with select.epoll() as own:
    for _ in range(100):
        assert own.poll(0.001) == []
        burn(0.0005)
print(ended)
""",
    )

    assert profile.trust.counters["waits_ended_by_signals"] >= seen
