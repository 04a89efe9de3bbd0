"""End a program that hangs, with what its threads wait for on record.

Reads `/proc` for what the kernel knows of each thread. gdb, where it is installed and may, gives the C
stacks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

_GDB_LIMIT_S = 30


def end(pid: int, file: Path) -> None:
    """Write the stacks of a process group's processes to `file`, then kill the group.

    Args:
        pid: leader of the group.
        file: gets the text.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as text:
        for member in members(pid):
            text.write(f"== process {member}: {_read(member, 'cmdline')}\n")
            for task in sorted(Path(f"/proc/{member}/task").glob("*")):
                waits = " ".join(_read(task, name) for name in ("comm", "wchan", "syscall"))
                text.write(f"{task.name} {waits}\n")
            text.write(_c_stacks(member))
            text.flush()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def members(group: int) -> list[int]:
    """Return the processes of a process group."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if os.getpgid(int(folder.name)) == group:
                    found.append(int(folder.name))
    return sorted(found)


def _read(of: int | Path, name: str) -> str:
    folder = of if isinstance(of, Path) else Path(f"/proc/{of}")
    try:
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        return f"({name}: {problem.strerror})"
    return text.replace("\0", " ").strip() or "-"


def _c_stacks(pid: int) -> str:
    gdb = shutil.which("gdb")
    if gdb is None:
        return "(gdb is not installed)\n"
    command = [gdb, "-batch", "-ex", "thread apply all bt", "-p", str(pid)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_GDB_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return f"(gdb did not end within {_GDB_LIMIT_S} s)\n"
    return done.stdout + done.stderr
