"""The Python program to profile, as arguments of its interpreter.

Does not start anything. Invariant: `arguments` is, word for word, what follows the interpreter's
flags on the command line of a plain `python`.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError
from deepcontext.profiler.recording.launch import python_words

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKING: Final = "IES"  # they turn off PYTHONPATH, or the site module


@dataclass(frozen=True, slots=True)
class Program:
    """A script, module or piece of code, and its arguments.

    Attributes:
        arguments: ``("train.py", "--epochs", "1")``, ``("-m", "package.train", ...)``,
            ``("-c", "print(1)", ...)`` or ``("-", ...)`` for a program read from standard input;
            ``-mpackage.train`` may be one word. Never empty.
        flags: the interpreter's flags, between ``python`` and the program.
        name: the program as the user typed it, if this is not its path: ``pytest``.
    """

    arguments: tuple[str, ...]
    flags: tuple[str, ...] = ()
    name: str = ""

    @property
    def is_script(self) -> bool:
        """Whether the program is a file or folder, and not ``-m``, ``-c`` or standard input."""
        first = self.arguments[0]
        return first != "-" and not first.startswith(("-m", "-c"))

    @property
    def label(self) -> str:
        """The program without its arguments: ``train.py``, ``-m package.train`` or ``-c``."""
        first = self.arguments[0]
        if first.startswith("-m"):
            return f"-m {self.stem}"
        return "-c" if first.startswith("-c") else self.name or first

    @property
    def stem(self) -> str:
        """Name for files about this program, without a suffix."""
        first = self.arguments[0]
        if first.startswith("-m"):
            return first[2:] or self.arguments[1]
        if not self.is_script:
            return "stdin" if first == "-" else "command"
        return Path(first).stem or Path(first).resolve().stem or "program"

    def import_folder(self) -> str:
        """Return what the interpreter will put first on `sys.path`."""
        if not self.is_script:
            return str(Path.cwd())
        script = Path(self.arguments[0]).resolve()
        # A folder or an archive with a __main__.py is itself the first entry.
        return str(script.parent if _is_source(script) else script)

    def check(self) -> None:
        """Check that the program exists, before anything runs.

        Raises:
            UserError: the script does not exist, cannot be read, or is a folder without
                ``__main__.py``. A module is looked up by the interpreter alone, because finding it
                may run the code of its package.
        """
        if not self.is_script:
            return
        target = self.arguments[0]
        script = Path(target)
        if not script.exists():
            raise UserError(
                f"cannot profile '{target}': no such file in '{Path.cwd()}', and no such command on "
                "PATH; give the path of a script, a command, or -m MODULE"
            )
        if script.is_dir() and not (script / "__main__.py").exists():
            raise UserError(
                f"cannot profile '{target}': a folder without '__main__.py'; "
                "give the script inside it, or -m MODULE"
            )
        if not os.access(script, os.R_OK):
            raise UserError(f"cannot profile '{target}': it may not be read by this user")


def refuse_flags(flags: Sequence[str]) -> None:
    """Refuse flags of the interpreter that keep the profiler out.

    Raises:
        UserError: a flag makes Python ignore PYTHONPATH or `sitecustomize.py`.
    """
    for letter in _BLOCKING:
        if letter in python_words.letters(flags):
            raise UserError(
                f"cannot profile under 'python -{letter}': the profiler starts through PYTHONPATH "
                f"and the site module, which -{letter} turns off; leave it out, or call "
                "deepcontext.profile() in the program"
            )


def _is_source(script: Path) -> bool:
    return script.is_file() and not zipfile.is_zipfile(script)
