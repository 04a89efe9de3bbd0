"""Distinguish a signal sent only to this process from a signal sent to its whole process group.

A child in the same group has already received a signal of the group; sending it on would deliver it
twice. The kernel does not say which kind a signal is. Therefore a witness, a process of the group
that blocks all signals, keeps the signals that the group receives.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Final, NoReturn

# The sender of a signal to a group reaches all its members within microseconds; `timeout` sends a
# signal to its child and then to the group.
_WAIT_S: Final = 0.02
_MOST_FILES: Final = 1 << 16
_FROM_KERNEL: Final = 0x80  # SI_KERNEL of <asm-generic/siginfo.h>: a terminal, to the whole group


class GroupWitness:
    """Knows which signals the process group received, from its making until `end`."""

    def __init__(self) -> None:
        self._pid, self._lifeline = _start_witness()

    def end(self) -> None:
        """End the witness."""
        os.close(self._lifeline)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def has_seen(self, received: signal.struct_siginfo) -> bool:
        """Return whether the process group received the signal, and forget it."""
        if received.si_code == _FROM_KERNEL:
            return True
        time.sleep(_WAIT_S)
        is_of_group = bool(self._pending() >> (received.si_signo - 1) & 1)
        if is_of_group:  # a signal stays pending in the witness
            self.end()
            self._pid, self._lifeline = _start_witness()
        return is_of_group

    def _pending(self) -> int:
        """Return the pending signals of the witness, signal 1 in the lowest bit."""
        try:
            with open(f"/proc/{self._pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
                return next(int(line.split()[1], 16) for line in file if line.startswith("ShdPnd:"))
        except (OSError, StopIteration):
            return 0


def _start_witness() -> tuple[int, int]:
    """Return the witness's process id, and the descriptor that keeps it alive."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_witness(reading)
    os.close(reading)
    return pid, writing


def _be_witness(lifeline: int) -> NoReturn:
    """Wait, without any file of the job, until the other process ends."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.closerange(0, lifeline)
        os.closerange(lifeline + 1, _MOST_FILES)
        os.read(lifeline, 1)
    finally:
        os._exit(0)
