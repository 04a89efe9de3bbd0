"""Which Python interpreter a file is, or is run by, and whether it is the one that runs deepcontext."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_PYTHON: Final = re.compile(r"python(\d(\.\d+)?)?")
_HEAD_BYTES: Final = 4096
# The first lines that pip writes if the interpreter's path is long or contains a space.
_SHELL_START: Final = re.compile(r"""#!/bin/sh\n'''exec' (?P<words>.+) "\$0" "\$@"\n""")
_LONGEST_ANSWER_S: Final = 10
_SETTINGS: Final = "pyvenv.cfg"


def is_interpreter(path: str) -> bool:
    """Return whether the file is a Python interpreter, according to its name."""
    return _PYTHON.fullmatch(Path(path).name) is not None


def is_program(path: str) -> bool:
    """Return whether the file is executable code for the machine, or a script with its interpreter."""
    return _head(path).startswith((b"#!", b"\x7fELF"))


def script_interpreter(path: str) -> tuple[str, ...]:
    """Return the Python interpreter and its flags that a script names in its first line.

    Returns:
        the interpreter's path, then the flags; empty if the file is not a Python script.
    """
    text = _head(path).decode(errors="surrogateescape")
    if match := _SHELL_START.match(text):
        words = shlex.split(match["words"])
    else:
        first = text.partition("\n")[0]
        words = first[2:].split() if first.startswith("#!") else []
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if word != "-S"]
            words[:1] = [shutil.which(words[0]) or words[0]] if words else []
    return tuple(words) if words and _PYTHON.fullmatch(Path(words[0]).name) else ()


def is_own(path: str) -> bool:
    """Return whether the interpreter is the one of this process: same file and same environment."""
    return _identity(path) == _identity(sys.executable)


def _identity(path: str) -> str:
    """Return the folder of the virtual environment, otherwise the file behind all links."""
    if _head(path).startswith(b"#!"):  # pyenv and others: a script that chooses the interpreter
        path = _chosen_by(path)
    folder = Path(path).absolute().parent
    for candidate in (folder, folder.parent):
        if (candidate / _SETTINGS).is_file():
            return str(candidate.resolve())
    return str(Path(path).resolve())


def _chosen_by(script: str) -> str:
    words = [script, "-c", "import sys; print(sys.executable)"]
    try:
        done = subprocess.run(  # noqa: S603  what the user asked to run
            words, capture_output=True, text=True, check=False, timeout=_LONGEST_ANSWER_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return script
    return done.stdout.strip() or script


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""
