"""The text of the user's lines that occur in a tree, read while the program runs.

Each file is read once, at the first snapshot in which it occurs, because people change a program while it
runs; the program itself is read at the start. Opens regular files only. Invariant: whatever is wrong with a
file costs its text, and nothing else.
"""

from __future__ import annotations

import array
import re
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format import own_os, source_text
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.own_os import os
from deepcontext.profiler.format.source_text import (
    MOST_BYTES,
    MOST_FILE_BYTES,
    MOST_LINES,
    split_lines,
    typed_lines,
)
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.recording import clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext._native import FrameColumns
    from deepcontext.profiler.format.source_text import FileText

_LOADED_BY: Final = os.getpid()
_LOADED_UNIX_NS: Final = clock.unix_ns()
_LIBRARY_KINDS: Final = frozenset({FrameKind.NATIVE, FrameKind.RANK})  # `line` is no source line
_MOST_KEPT_BYTES: Final = 8 << 20
_COMMAND: Final = "<string>"
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

Names = dict[int, set[str]]


class _NoTextError(Exception):
    """A file whose text is left out; the message says why."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The section, and what a reader must know about it."""

    sections: Mapping[str, bytes]
    notes: Sequence[str] = ()


class SourceText:
    """The text of the files of one session.

    Args:
        cwd: working directory at the start, to which names of files may be relative.
        command: the code of ``python -c``, "" without.
        program: the file that Python runs, "" without.
    """

    def __init__(self, cwd: str, command: str = "", program: str = "") -> None:
        self._cwd = cwd
        self._command = command
        # A forked child runs what its parent loaded, however late it begins.
        is_forked = os.getpid() != _LOADED_BY
        self._not_after_ns = _LOADED_UNIX_NS if is_forked else clock.unix_ns()
        self._kept: dict[str, str] = {}
        self._kept_bytes = 0
        self._refused: dict[str, str] = {}
        # Snapshots of a program that is past its set-up have the same lines.
        self._told_of: dict[str, Names] = {}
        self._told = Texts({})
        if program:
            self._lines(os.path.join(cwd, program))

    def of(self, frames: FrameColumns) -> Texts:
        """Return the text around the lines of some frames."""
        lines_of = _user_lines(frames)
        if lines_of == self._told_of:
            return self._told
        found: dict[str, FileText] = {}
        cut = 0
        for file, wanted in lines_of.items():
            is_command = file == _COMMAND
            surely = [n for n, names in wanted.items() if not is_command or self._has(names)]
            text = source_text.around(self._lines(file), surely)
            if text.lines:
                found[file] = text
                cut += any(n <= text.length and n not in text.lines for n in surely)
        kept = source_text.bounded(found)
        sections = {source_text.SECTION: source_text.encode(kept)} if kept else {}
        texts = Texts(sections, self._notes(len(found) - len(kept), cut))
        if lines_of.keys() <= self._kept.keys() | self._refused.keys() | {_COMMAND}:
            self._told_of, self._told = lines_of, texts
        return texts

    def _notes(self, left_out: int, cut: int) -> tuple[str, ...]:
        """Say what is missing: the text of so many files, the last lines of so many others."""
        notes = []
        if cut:
            notes.append(f"files whose source text ends after {MOST_LINES:,} lines: {cut}")
        if left_out:
            notes.append(
                f"the source text of {left_out} files is not in the profile, which holds up to "
                f"{MOST_BYTES >> 20} MiB of text"
            )
        reasons: dict[str, list[str]] = {}
        for file, reason in sorted(self._refused.items()):
            reasons.setdefault(reason, []).append(file)
        for reason, files in reasons.items():
            name, more = os.path.basename(files[0]), len(files) - 1
            others = f" and {more} more" if more else ""
            notes.append(f"no source text of {name}{others}: {reason}")
        return tuple(notes)

    def _lines(self, file: str) -> list[str]:
        """Return the lines of a file, none if they are not known."""
        if file not in self._kept and file not in self._refused:
            try:
                text = self._read(file)
            except _NoTextError as reason:
                self._refused[file] = str(reason)
            except Exception as error:  # noqa: BLE001  an audit hook of the program may raise anything
                self._refused[file] = f"{type(error).__name__}: {error}"
            else:
                if text is None:  # it may be typed later
                    return typed_lines(file) or (self._command_lines() if file == _COMMAND else [])
                self._keep(file, text)
        return split_lines(self._kept.get(file, ""))

    def _keep(self, file: str, text: str) -> None:
        self._kept_bytes += len(text)
        if self._kept_bytes > _MOST_KEPT_BYTES:
            self._refused[file] = f"the files of the program take over {_MOST_KEPT_BYTES >> 20} MiB"
        else:
            self._kept[file] = text

    def _read(self, file: str) -> str | None:
        """Return the text of a file; None where there is none, or it cannot be opened."""
        path = os.path.join(self._cwd, file)
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wake its writer
                return None
            descriptor = os.open(path, _FLAGS)
        except (OSError, ValueError):  # ValueError: a NUL character in the name
            return None
        try:
            content = own_os.read(descriptor, MOST_FILE_BYTES + 1)
            status = os.fstat(descriptor)  # after reading, so that a change meanwhile is seen
        except OSError:
            return None
        finally:
            os.close(descriptor)
        if status.st_mtime_ns > self._not_after_ns:
            raise _NoTextError("it was changed after the program started")
        if len(content) > MOST_FILE_BYTES:
            raise _NoTextError(f"it has more than {MOST_FILE_BYTES >> 20} MiB")
        return source_text.decoded(content) or ""

    def _command_lines(self) -> list[str]:
        """Return the code of ``python -c``; with `exec` in it, nothing tells the code of both apart."""
        is_mixed = re.search(r"\b(exec|eval)\s*\(", self._command)
        return [] if is_mixed else split_lines(self._command)

    def _has(self, functions: set[str]) -> bool:
        """Return whether the command defines all functions that have frames at a line.

        Code that libraries generate has the same file, "<string>": methods of dataclasses, for example.
        """
        names = {function.rpartition(".")[2] for function in functions}
        return all(
            name.startswith("<")
            or re.search(rf"\b(def|class)\s+{re.escape(name)}\b", self._command)
            for name in names
        )


def program_of(script: str) -> str:
    """Return the file that Python runs, "" where there is none (`-c`, `-m`, a notebook).

    Args:
        script: what the launcher was asked to run, "" for a session within a program.
    """
    file = script or getattr(sys.modules.get("__main__"), "__file__", None)
    return file if isinstance(file, str) and file.endswith(".py") else ""


def command_of(script: str) -> str:
    """Return the code that ``python -c`` runs, "" where the program is something else.

    Args:
        script: what the launcher was asked to run.
    """
    words = sys.orig_argv
    if script != "-c" or "-c" not in words[:-1]:
        return ""
    return words[words.index("-c") + 1]


def _user_lines(frames: FrameColumns) -> dict[str, Names]:
    """Return by user file its lines, and the names of the frames at each line."""
    strings = frames["strings"]
    files = array.array("I", frames["file"])
    names, lines = array.array("I", frames["name"]), array.array("I", frames["line"])
    user = {number for number in set(files) if is_user_file(strings[number])}
    found: dict[str, Names] = {}
    for kind, name, file, line in zip(frames["kind"], names, files, lines, strict=True):
        if file in user and line and kind not in _LIBRARY_KINDS:
            found.setdefault(strings[file], {}).setdefault(line, set()).add(strings[name])
    return found
