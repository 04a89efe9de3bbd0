"""Which values the options of a session may have: one rule each, for Python and the command line.

Does not know how an option is spelled there; whoever asks names it. Standard library only: it runs
in the program under test.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from deepcontext.errors import UserError
from deepcontext.profiler.format.counter_names import COUNTER_NAMES

_MOST_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that an option may have.

    Attributes:
        least: the smallest.
        most: the largest.
        meaning: what is counted, as a message has it: "samples a second".
        is_whole: whether only whole numbers are meant.
    """

    least: float
    most: float
    meaning: str
    is_whole: bool = False

    def problem(self, value: Any) -> str | None:
        """Return what is wrong with a value, None where nothing is."""
        if self.least <= self._number(value) <= self.most:  # nothing is comparable to nan
            return None
        kind = "a whole number" if self.is_whole else "a number"
        bounds = f"from {self.least:,} to {self.most:,} ({self.meaning})"
        return f"expected {kind} {bounds}, found {_shown(value)}"

    def _number(self, value: Any) -> float:
        if isinstance(value, bool | str | bytes):
            return math.nan
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return math.nan
        return number if not self.is_whole or number.is_integer() else math.nan


CPU_RATE: Final = Range(0, 1000, "samples a second; 0 for none")
SNAPSHOT_INTERVAL: Final = Range(0, 1_000_000, "seconds; 0 to write at the end only")
# The most is that of `ThreadTree` in native/core/thread_tree.h.
NODE_LIMIT: Final = Range(1, 4_194_304, "nodes a thread", is_whole=True)


def number(option: str, value: Any, allowed: Range) -> float:
    """Return a value as a number.

    Raises:
        UserError: it is no number, or out of range; the message names the option.
    """
    _refuse(option, allowed.problem(value))
    return float(value)


def whole_number(option: str, value: Any, allowed: Range) -> int:
    """Return a value as a whole number; otherwise as `number`."""
    return int(number(option, value, allowed))


def flag(option: str, value: Any) -> bool:
    """Return a value as a truth value: True, False, 1 or 0; not "no", which Python takes for true.

    Raises:
        UserError: it is none of these; the message names the option.
    """
    try:
        found = operator.index(value)
    except TypeError:
        found = -1
    is_flag = found in {0, 1}
    _refuse(option, None if is_flag else f"expected True or False, found {_shown(value)}")
    return bool(found)


def counters(option: str, value: Any) -> tuple[str, ...]:
    """Return names of counters: of a sequence, or of a text with commas between the names.

    Raises:
        UserError: one is unknown; the message names the option and all that are known.
    """
    wanted: Iterable[Any] = ()
    if isinstance(value, str):
        wanted = [name.strip() for name in value.split(",")] if value.strip() else ()
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        wanted = list(value)
    else:
        _refuse(option, f"expected names of counters, found {_shown(value)}")
    unknown = [name for name in wanted if name not in COUNTER_NAMES]
    known = ", ".join(COUNTER_NAMES)
    _refuse(option, f"no counter {_shown(unknown[0])}; known are {known}" if unknown else None)
    return tuple(dict.fromkeys(map(str, wanted)))


def _refuse(option: str, problem: str | None) -> None:
    if problem is not None:
        raise UserError(f"option {option}: {problem}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
