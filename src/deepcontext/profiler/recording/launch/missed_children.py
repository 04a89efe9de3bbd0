"""Children of this process that use a framework and have no profile, and why.

A child that ignores PYTHONPATH (`python -I`), does not get it (`env={}`), or is forked without
`multiprocessing` cannot be recorded. The parent finds such a child in `/proc` when it writes a snapshot.
A child that ends between two snapshots is not found, but its processor time is known.
Invariant: this module waits for nothing and sends no signal; only the program reaps its children.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.recording.launch import python_words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# A child needs this time from its start to its first snapshot, on a busy machine.
_LEAST_AGE_S: Final = 3.0
# Children for each check; more children are checked in parts.
_MOST_LOOKED: Final = 64
_DEEPEST: Final = 4
_MOST_SHOWN: Final = 5
_LONGEST_COMMAND: Final = 60
# Files that only the frameworks map.
_LIBRARIES: Final = (b"/libtorch_python.so", b"/jaxlib/")
# Source: torch/_inductor/compile_worker/subproc_pool.py: the script of the processes that compile kernels.
_COMPILE_WORKER: Final = b"/torch/_inductor/compile_worker/"
# Flags of the interpreter that turn off PYTHONPATH or the module `site`.
_FLAGS: Final = ("I", "E", "S")


class MissedChildren:
    """Checks the children of this process, and remembers those that should have a profile."""

    def __init__(self, run: Path) -> None:
        """Look for children whose profiles should be in the run directory `run`."""
        self._run = run
        self._launch = os.fsencode(run_directory.launch_folder(run))
        self._command = _read("/proc/self/cmdline")
        self._environment = _read("/proc/self/environ").split(b"\0")
        self._decided: set[tuple[int, int]] = set()  # process number and start
        self._missed: dict[tuple[int, int], str] = {}
        self._compile_workers = 0
        self._recorded: Mapping[int, int] = {}
        self._to_look = 0

    def look(self) -> None:
        """Check the children that run now; takes 0.1 ms without children, 0.2 ms for two children."""
        self._recorded = run_directory.process_numbers(self._run)
        for key in [key for key in self._missed if key[0] in self._recorded]:
            del self._missed[key]  # its first profile came late
        self._to_look = _MOST_LOOKED
        self._look_below(os.getpid(), 0)

    @property
    def count(self) -> int:
        """Number of missed children, without the processes in which torch.compile compiles."""
        return len(self._missed)

    def notes(self) -> list[str]:
        """Return a text for each missed child; one for all beyond the first five, one for compilers."""
        texts = list(self._missed.values())
        told = [f"not recorded: {text}" for text in texts[:_MOST_SHOWN]]
        if len(texts) > _MOST_SHOWN:
            told.append(
                f"not recorded: {len(texts) - _MOST_SHOWN} more children that use a framework"
            )
        if self._compile_workers:
            told.append(
                f"not recorded: {self._compile_workers} processes in which torch.compile compiles kernels"
            )
        return told

    def _look_below(self, parent: int, depth: int) -> None:
        for pid in _children(parent):
            if self._to_look <= 0:
                return
            if pid in self._recorded:
                continue  # this child checks its own children
            self._to_look -= 1
            try:
                self._judge(pid)
            except (OSError, ValueError, IndexError):
                continue  # it has ended, or belongs to another user
            if depth < _DEEPEST:
                self._look_below(pid, depth + 1)

    def _judge(self, pid: int) -> None:
        start_s = _start_s(pid)
        key = pid, round(start_s * 100)
        if key in self._decided or _uptime_s() - start_s < _LEAST_AGE_S:
            return
        maps = _read(f"/proc/{pid}/maps")
        if not any(name in maps for name in _LIBRARIES):
            return  # it may still import a framework
        self._decided.add(key)
        environment = _read(f"/proc/{pid}/environ").split(b"\0")
        launched = [entry for entry in environment if entry.startswith(b"DEEPCONTEXT_LAUNCH=")]
        if launched and launched[0] not in self._environment:
            return  # `deepcontext profile` of its own
        command = _read(f"/proc/{pid}/cmdline")
        reason = self._reason(command, environment)
        if reason and _COMPILE_WORKER in command:
            self._compile_workers += 1
        elif reason:
            self._missed[key] = f"process {pid}, '{_shown(command)}', {reason}"

    def _reason(self, command: bytes, environment: list[bytes]) -> str:
        """Return why the child has no profile, "" if it was found and decided itself."""
        if command == self._command:
            return (
                "was forked without a Process of multiprocessing, or beyond the limit of children"
            )
        flag = _blocking_flag(command)
        if flag:
            return f"runs under python -{flag}, which turns off the search for children"
        if not any(
            entry.startswith(b"PYTHONPATH=") and self._launch in entry for entry in environment
        ):
            return "was started without the PYTHONPATH of its parent"
        return ""  # a launcher, a rank that is not to be recorded, or one that said why not


def _children(pid: int) -> list[int]:
    """Return the children of a process; none where the kernel does not list them."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  pathlib's is a wrapper
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    except OSError:  # the process or the thread has ended
        return found
    return found


def _blocking_flag(command: bytes) -> str:
    """Return the Python flag that prevents recording of the child, "" for none."""
    words = command.decode(errors="replace").split("\0")[1:]
    flags, _ = python_words.split(words)
    return next((letter for letter in python_words.letters(flags) if letter in _FLAGS), "")


def _shown(command: bytes) -> str:
    text = " ".join(command.decode(errors="replace").split("\0")).strip()
    text = " ".join(text.split())
    first, _, rest = text.partition(" ")
    text = f"{first.rpartition('/')[2]} {rest}".strip()
    return text if len(text) <= _LONGEST_COMMAND else f"{text[:_LONGEST_COMMAND]}..."


def _start_s(pid: int) -> float:
    """Return the start of a process in seconds since boot."""
    # The name in parentheses may hold spaces and parentheses. Source: proc_pid_stat(5), field 22.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _uptime_s() -> float:
    return float(_read("/proc/uptime").split()[0])


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123  no more is imported than must be
        return file.read()
