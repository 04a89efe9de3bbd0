"""The program to profile, as arguments of its interpreter.

Does not start anything. Invariant: `arguments` is, word for word, what follows the interpreter's
flags on the command line of a plain `python`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deepcontext.errors import UserError

_PYTHON: Final = re.compile(r"python(\d(\.\d+)?)?")


@dataclass(frozen=True, slots=True)
class Program:
    """A script, module or piece of code, and its arguments.

    Attributes:
        arguments: ``("train.py", "--epochs", "1")``, ``("-m", "package.train", ...)``,
            ``("-c", "print(1)", ...)`` or ``("-", ...)`` for a program read from standard input;
            ``-mpackage.train`` may be one word. Never empty.
    """

    arguments: tuple[str, ...]

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
        return "-c" if first.startswith("-c") else first

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
                f"cannot profile '{target}': no such file in '{Path.cwd()}'; {self._hint()}"
            )
        if script.is_dir() and not (script / "__main__.py").exists():
            raise UserError(
                f"cannot profile '{target}': a folder without '__main__.py'; "
                "give the script inside it, or -m MODULE"
            )
        if not os.access(script, os.R_OK):
            raise UserError(f"cannot profile '{target}': it may not be read by this user")

    def _hint(self) -> str:
        """Suggest what to write instead of a word that names no file."""
        target, *rest = self.arguments
        if _PYTHON.fullmatch(target):
            return f"leave the word out: deepcontext profile {shlex.join(rest) or 'SCRIPT'}"
        if target == "torchrun":
            return "to profile every rank: torchrun [options] -m deepcontext profile SCRIPT"
        command = shutil.which(target)
        if command is not None:
            return f"if the command is written in Python, give its path, '{command}'"
        return "give the path of a script, or -m MODULE"


def _is_source(script: Path) -> bool:
    return script.is_file() and not zipfile.is_zipfile(script)
