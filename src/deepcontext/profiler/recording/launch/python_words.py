"""The words of a Python interpreter's command line: its flags, and the program after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM: Final = "mc"
_WITH_VALUE: Final = "XW"
_LONG_WITH_VALUE: Final = "--check-hash-based-pycs"


def split(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the words after the interpreter into its flags and the program.

    Returns:
        the flags as they were given, without a ``-m`` or ``-c`` that follows in the same word
        (``-Bm`` gives ``-B``), and the program: ``("-m", "package.train", ...)``, ``("-c", ...)``,
        ``("-", ...)`` or ``("train.py", ...)``; empty for an interactive interpreter.
    """
    flags: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        if word == "-" or not word.startswith("-"):
            return tuple(flags), tuple(words[index:])
        if word.startswith("--"):
            size = 1 + (word == _LONG_WITH_VALUE)
        else:
            end = _end_of_flags(word)
            if word[end : end + 1] in tuple(_PROGRAM):
                flags += [word[:end]] if end > 1 else []
                value = (word[end + 1 :],) if word[end + 1 :] else ()
                return tuple(flags), (f"-{word[end]}", *value, *words[index + 1 :])
            size = 1 + (word[end:] in tuple(_WITH_VALUE))
        flags += words[index : index + size]
        index += size
    return tuple(flags), ()


def letters(flags: Sequence[str]) -> str:
    """Return the letters of the flags: ``IB`` of ``-I -B``, ``-IB`` and ``-IBX utf8``."""
    return "".join(
        word[1 : _end_of_flags(word)]
        for word in flags
        if word.startswith("-") and not word.startswith("--")
    )


def _end_of_flags(word: str) -> int:
    """Return where the letters without a value end."""
    for index, letter in enumerate(word[1:], start=1):
        if letter in _PROGRAM + _WITH_VALUE:
            return index
    return len(word)
