"""Run a command as a child, wait for it, and end as it did.

Signals reach the command as if it had been started without deepcontext. A signal that only this
process receives is sent on; a signal that the whole process group receives is not. Does not record.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.recording.launch.group_signals import GroupWitness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deepcontext.profiler.recording.launch.target import Executable

# SIGUSR1 and SIGUSR2: Slurm announces the end of a job's time with them.
_SENT_ON: Final = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def run(command: Executable, environment: Mapping[str, str]) -> int:
    """Run the command and wait for it.

    Returns:
        the exit status, or the negative number of the signal that ended the command.

    Raises:
        EnvironmentProblem: the machine cannot start the command.
    """
    ignored = {s for s in (*_SENT_ON, signal.SIGCHLD) if signal.getsignal(s) is signal.SIG_IGN}
    waited = {*_SENT_ON, signal.SIGCHLD} - (ignored - {signal.SIGCHLD})
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, the exit status would be lost
    witness = GroupWitness()
    try:
        child = _start(command, environment, _preparation(mask, ignored))
        return _wait(child, waited, witness)
    finally:
        witness.end()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def end_as(status: int) -> int:
    """End this process by the signal that ended the command; return the status if there was none."""
    if status >= 0:
        return status
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    number = -status
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


def _start(
    command: Executable, environment: Mapping[str, str], prepare: Callable[[], None]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603  the user's command
            command.arguments,
            executable=command.path,
            env=environment,
            close_fds=False,
            preexec_fn=prepare,  # noqa: PLW1509  this process has one thread
        )
    except OSError as error:
        raise EnvironmentProblem(f"cannot start '{command.path}': {error.strerror}") from error


def _preparation(mask: set[int], ignored: set[signal.Signals]) -> Callable[[], None]:
    """Return what the child does before it becomes the command."""
    set_death_signal = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def prepare() -> None:
        if signal.SIGCHLD in ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        # SIGKILL cannot be sent on, so the kernel kills the command when this process is killed.
        set_death_signal(_SET_DEATH_SIGNAL, int(signal.SIGKILL))
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return prepare


def _wait(
    child: subprocess.Popen[bytes], waited: set[signal.Signals], witness: GroupWitness
) -> int:
    while (status := child.poll()) is None:
        received = signal.sigwaitinfo(waited)
        if received.si_signo != signal.SIGCHLD and not witness.has_seen(received):
            child.send_signal(received.si_signo)
    return status
