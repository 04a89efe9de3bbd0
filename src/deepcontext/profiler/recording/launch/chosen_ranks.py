"""The option `--ranks`: which ranks of a job are recorded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError

if TYPE_CHECKING:
    from deepcontext.profiler.recording.rank import Rank

_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def ranges_of(text: str) -> list[range]:
    """Return the ranks that a text such as ``0,8-15`` names; "" names none.

    Raises:
        UserError: the text is no list of numbers and ranges.
    """
    return [_range(part.strip(), text) for part in text.split(",")] if text else []


def is_chosen(text: str, rank: Rank | None) -> bool:
    """Return whether a process is recorded: also if nothing was chosen, or it has no known rank."""
    return not text or rank is None or any(rank.number in each for each in ranges_of(text))


def first_chosen(text: str, rank: Rank) -> int:
    """Return the lowest rank of the job that is recorded.

    Raises:
        UserError: the job has none of the chosen ranks.
    """
    if not text:
        return 0
    first = min(each.start for each in ranges_of(text))
    if first >= rank.of:
        raise UserError(
            f"cannot record the ranks '{text}': the job has {rank.of} ranks, 0 to {rank.of - 1}; "
            "choose some of these with --ranks"
        )
    return first


def _range(part: str, text: str) -> range:
    found = _RANGE.fullmatch(part)
    if found is None:
        raise UserError(
            f"cannot read the ranks '{text}': expected numbers and ranges with commas between them, as "
            f"in 0,8-15, found '{part}'"
        )
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise UserError(
            f"cannot read the ranks '{text}': the range '{part}' ends before it begins; write "
            f"{last}-{first}"
        )
    return range(first, last + 1)
