"""Which values an option may have: one rule each, for Python and the command line.

Does not know the options (`options.py`), nor how the caller spells them. Standard library only: it
runs in the program under test.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

_MOST_SHOWN: Final = 60


class NotAllowedError(Exception):
    """A value breaks the rule of its option; the message says what was expected and found."""


class Rule(Protocol):
    """The values that an option may have."""

    def read(self, value: Any) -> Any:
        """Return a value of a program as the session needs it.

        Raises:
            NotAllowedError: the value breaks the rule.
        """
        ...

    def read_text(self, text: str) -> Any:
        """Return a word of the command line as the session needs it; raises as `read` does."""
        return self.read(text)


@dataclass(frozen=True, slots=True)
class Flag(Rule):
    """True, False, 1 or 0; not "no", which is true in Python."""

    def read(self, value: Any) -> bool:
        """Return the value as a truth value."""
        try:
            found = operator.index(value)
        except TypeError:
            found = -1
        if found not in {0, 1}:
            raise NotAllowedError(f"expected True or False, found {_shown(value)}")
        return bool(found)


@dataclass(frozen=True, slots=True)
class Range(Rule):
    """Numbers from `least` to `most`.

    Attributes:
        least: the smallest.
        most: the largest.
        meaning: what is counted, for messages: "samples a second".
        is_whole: whether only whole numbers are allowed.
    """

    least: float
    most: float
    meaning: str
    is_whole: bool = False

    def read(self, value: Any) -> float:
        """Return the value as a number: an integer if the rule wants whole numbers."""
        number = self._number(value)
        if self.least <= number <= self.most:  # nothing is comparable to nan
            return int(number) if self.is_whole else number
        kind = "a whole number" if self.is_whole else "a number"
        bounds = f"from {self.least:,} to {self.most:,} ({self.meaning})"
        raise NotAllowedError(f"expected {kind} {bounds}, found {_shown(value)}")

    def read_text(self, text: str) -> float:
        """Return the number that the text represents."""
        value: float | str = text
        for kind in (float, int):  # int wins, so that a message shows "1001" as it was typed
            with contextlib.suppress(ValueError):
                value = kind(text)
        return self.read(value)

    def _number(self, value: Any) -> float:
        if isinstance(value, bool | str | bytes):
            return math.nan
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return math.nan
        return number if not self.is_whole or number.is_integer() else math.nan


@dataclass(frozen=True, slots=True)
class Names(Rule):
    """Names from a list, given as a sequence or as one text with commas between the names.

    Attributes:
        noun: what the names stand for: "counter".
        known: the names that are allowed.
    """

    noun: str
    known: tuple[str, ...]

    def read(self, value: Any) -> tuple[str, ...]:
        """Return the names, each once."""
        if isinstance(value, str):
            wanted: list[Any] = [name.strip() for name in value.split(",")] if value.strip() else []
        elif isinstance(value, Iterable) and not isinstance(value, bytes):
            wanted = list(value)
        else:
            raise NotAllowedError(f"expected names of {self.noun}s, found {_shown(value)}")
        unknown = [name for name in wanted if name not in self.known]
        if unknown:
            known = ", ".join(self.known)
            raise NotAllowedError(f"no {self.noun} {_shown(unknown[0])}; known are {known}")
        return tuple(dict.fromkeys(map(str, wanted)))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
