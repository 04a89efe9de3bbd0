"""Print the short report from a separate process.

In the program's process, the libraries that draw the report would run among the program's modules,
warning filters and replaced streams.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import run_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS: Final = ("-P", "-m", "deepcontext", "report", "--summary")


def print_short_report(
    path: str, environment: Mapping[str, str], executable: str, package_root: str
) -> None:
    """Print the short report of a profile or run directory to standard error; wait for it.

    Args:
        path: the profile or run directory.
        environment: variables to pass on, except those of the interpreter.
        executable: the Python interpreter.
        package_root: folder that holds the package `deepcontext`.
    """
    python_path = run_directory.without_launch_folders(environment.get("PYTHONPATH"))
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTHON")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package_root, python_path]))
    # A handler of the program must not be called for a child that the program did not start.
    previous = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.posix_spawn(
        executable,
        [executable, *_WORDS, path],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, 2, 1),
        ],
        setsigmask=(),
    )
    try:
        os.waitpid(child, 0)
    finally:
        if previous is not None:
            signal.signal(signal.SIGCHLD, previous)
