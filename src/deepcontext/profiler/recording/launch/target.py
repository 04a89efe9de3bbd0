"""What the words after `deepcontext profile` name: a Python program, or any other command.

A Python program of this interpreter becomes a `Program`, which is recorded from its first line. A
launcher, a shell script or any other executable file becomes an `Executable`, whose children are
recorded. Does not start anything.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deepcontext.errors import UserError
from deepcontext.profiler.recording.launch import interpreters, python_words
from deepcontext.profiler.recording.launch.launchers import is_launcher
from deepcontext.profiler.recording.launch.program import Program, refuse_flags

_SCRIPT_SUFFIXES: Final = frozenset({".py", ".sh"})


@dataclass(frozen=True, slots=True)
class Executable:
    """A command that is not itself recorded.

    Attributes:
        path: the file to execute.
        arguments: the words of the command, beginning with its name.
        label: the command without its arguments, as the user typed it.
    """

    path: str
    arguments: tuple[str, ...]
    label: str

    @property
    def stem(self) -> str:
        """Name for files about this command, without a suffix: that of the program it starts, if any."""
        starts_python = False
        words = self.arguments
        for word, following in zip(words, (*words[1:], ""), strict=True):
            path = Path(word)
            if path.suffix in _SCRIPT_SUFFIXES and os.path.isfile(word):  # noqa: PTH113
                return path.stem
            if word == "-m" and starts_python and following and not is_launcher((word, following)):
                return following
            starts_python |= is_launcher((word,)) or path.name.startswith("python")
        return Path(self.label).stem if not self.label.startswith("-") else self.label[2:].strip()


def resolve(words: tuple[str, ...]) -> Program | Executable:
    """Return what `words` name.

    Args:
        words: the program and its arguments; at least one word.

    Raises:
        UserError: a Python of another environment would run the program, or `python` was given no
            program.
    """
    program = Program(words)
    word = words[0]
    if not program.is_script:
        return _of_python(program)
    if os.path.exists(word):  # noqa: PTH110  pathlib raises for a name that is too long
        path = word if os.sep in word else f".{os.sep}{word}"
        return _of_file(path, program) if _may_be_executed(path) else program
    found = None if os.sep in word else shutil.which(word)
    return program if found is None else _of_file(str(Path(found).absolute()), program)


def _may_be_executed(path: str) -> bool:
    """Return whether the file is not merely the source of a Python program."""
    return (
        Path(path).suffix != ".py"
        and Path(path).is_file()
        and os.access(path, os.X_OK)
        and interpreters.is_program(path)
    )


def _of_file(path: str, program: Program) -> Program | Executable:
    """Return what an executable file is, according to its first line."""
    words = program.arguments
    if interpreters.is_interpreter(path):
        return _of_interpreter(path, program)
    interpreter = interpreters.script_interpreter(path)
    if not interpreter:
        return Executable(path, words, words[0])
    if not interpreters.is_own(interpreter[0]):
        raise UserError(_other_environment(words[0], interpreter[0]))
    if is_launcher([*interpreter[1:], path]):
        return Executable(path, words, words[0])
    refuse_flags(interpreter[1:])
    return Program((path, *words[1:]), flags=interpreter[1:], name=words[0])


def _of_interpreter(path: str, program: Program) -> Program | Executable:
    """Return the program that ``python [flags] train.py`` names."""
    if not interpreters.is_own(path):
        raise UserError(_other_environment(shlex.join(program.arguments), path))
    flags, words = python_words.split(program.arguments[1:])
    if not words:
        raise UserError(
            f"cannot profile '{shlex.join(program.arguments)}': it names no program; give a script, "
            "-m MODULE or -c CODE"
        )
    refuse_flags(flags)
    return _of_python(Program(words, flags=flags))


def _of_python(program: Program) -> Program | Executable:
    """Return the program itself, unless it is a launcher."""
    if not is_launcher(program.arguments):
        return program
    words = (sys.executable, *program.flags, *program.arguments)
    return Executable(sys.executable, words, program.label)


def _other_environment(command: str, interpreter: str) -> str:
    return (
        f"cannot profile '{command}': it runs with '{interpreter}', and this deepcontext belongs to "
        f"'{sys.executable}'; install deepcontext in the other environment too, and run "
        f"'{interpreter} -m deepcontext profile ...'"
    )
