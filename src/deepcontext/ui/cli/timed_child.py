"""Run one command and print what it cost, from a process that is smaller than the command.

Started as a script by `paired_runs.py`, not imported. Linux starts a child's peak memory at
the parent's memory at the fork, so a parent with numpy loaded would hide the peak of a small program.

usage: timed_child.py STDERR-FILE COMMAND [ARGUMENT ...]
output: wait status, wall time in ns, peak resident memory in KiB, on one line
"""

import os
import sys
import time


def _main() -> None:
    stderr, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, stderr, flags, 0o600),
    ]
    begun_ns = time.perf_counter_ns()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=files)
    _, status, usage = os.wait4(child, 0)
    wall_ns = time.perf_counter_ns() - begun_ns
    print(status, wall_ns, usage.ru_maxrss)


_main()
