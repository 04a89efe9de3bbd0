"""Python objects that held many tensors when the profiler looked, by name.

Reads the section "holders" of the memory collector. Does not judge: a list of tensors may be meant.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

SECTION: Final = "holders"
_LAYOUT: Final = 1


@dataclass(frozen=True, slots=True)
class Holder:
    """One object that held tensors, at the look that found most in it.

    Attributes:
        name: type and name, for example ``list Trainer.logged``.
        tensors: number of tensors.
        is_complete: whether the look went on to its end; otherwise there may be more tensors.
        with_graph: number of these with a graph for a backward.
        size_bytes: memory of the tensors, without the memory of their graphs.
        kept_share: share of all tensors ever made at the same places that were alive, 0 to 1.
        first_tensors: number of tensors at the first look that found the object.
        looks: number of looks that found it.
        places: Python frames (file, line, function) that made the tensors, outermost first, for each
            call path; most bytes first.
    """

    name: str
    tensors: int
    with_graph: int
    size_bytes: int
    kept_share: float
    is_complete: bool
    first_tensors: int
    looks: int
    places: tuple[tuple[tuple[str, int, str], ...], ...]

    def made_at(self, file: str, line: int) -> bool:
        """Return whether tensors were made at a line or in a function that the line called."""
        return any((file, line) == place[:2] for path in self.places for place in path)


def holders(profile: Profile) -> tuple[Holder, ...]:
    """Return the holders, those with most tensors first; empty for a profile without them.

    Raises:
        ProfileDataError: the section is damaged, or newer than this build.
    """
    return profile.once(Holder, lambda: _holders(profile))


def _holders(profile: Profile) -> tuple[Holder, ...]:
    payload = profile.sections.get(SECTION)
    if payload is None:
        return ()
    try:
        content = json.loads(payload)
        version = content["version"]
        if version == _LAYOUT:
            return tuple(_holder(row) for row in content["holders"])
    except (ValueError, TypeError, KeyError) as error:
        raise ProfileDataError(
            f"section '{SECTION}': {type(error).__name__}: {error}; the file is damaged"
        ) from error
    raise ProfileDataError(
        f"section '{SECTION}': layout {version}, this build reads {_LAYOUT}; upgrade deepcontext"
    )


def _holder(row: dict[str, Any]) -> Holder:
    return Holder(
        name=str(row["holder"]),
        tensors=int(row["tensors"]),
        with_graph=int(row["with_graph"]),
        size_bytes=int(row["size_bytes"]),
        kept_share=float(row["kept_share"]),
        is_complete=bool(row.get("is_complete", True)),  # earlier profiles do not have it
        first_tensors=int(row["first_tensors"]),
        looks=int(row["looks"]),
        places=tuple(
            tuple((str(file), int(line), str(function)) for file, line, function in path)
            for path in row["places"]
        ),
    )
