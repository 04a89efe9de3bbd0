"""What an export format is, and which measures of a profile it receives."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.ui.export.stacks import Stacks
from deepcontext.ui.format import format_count
from deepcontext.ui.measures import measure_named, measures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deepcontext.profiler.format.writing import FileKind
    from deepcontext.profiler.model.profile import Profile


@dataclass(frozen=True, slots=True)
class Format:
    """One export format.

    Attributes:
        encode: makes the content of a file from call paths with their values; None for a format that
            holds something else.
        suffix: suffix of the file names.
        kind: recognizes files of this format that deepcontext wrote.
        opened_by: a command that shows a file of this format; ``{}`` stands for its name.
        holds_many: whether one file has room for several measures.
        of_profile: makes the content from a whole profile instead.
        of_processes: makes the content from the profiles of several processes; a run directory then
            becomes a file for each host.
    """

    encode: Callable[[Stacks], bytes] | None
    suffix: str
    kind: FileKind
    opened_by: str
    holds_many: bool = True
    of_profile: Callable[[Profile], bytes] | None = None
    of_processes: Callable[[Iterable[Profile]], bytes] | None = None


def format_named(name: str) -> Format:
    """Return one of `deepcontext.ui.export.FORMATS`."""
    module = importlib.import_module(f"deepcontext.ui.export.{name.replace('-', '_')}")
    found: Format = module.FORMAT
    return found


@dataclass(frozen=True, slots=True)
class Exported:
    """The content of a file, and messages about values that were left out."""

    content: bytes
    notices: tuple[str, ...]


def export(profile: Profile, wanted: Format, keys: Sequence[str] = ()) -> Exported:
    """Return a profile in another format.

    Args:
        profile: the profile.
        wanted: the format.
        keys: measures to export, as in `deepcontext.ui.measures`; if empty, every summed metric
            if the format can hold several, otherwise the default metric.

    Raises:
        QueryError: the profile has no such measure, or no measures at all; no kept steps.
    """
    if wanted.of_profile is not None:
        return Exported(wanted.of_profile(profile), ())
    if wanted.encode is None:
        raise TypeError("a format is made from call paths or from a whole profile, found neither")
    if not keys:
        many = [each.key for each in measures(profile) if each.key in profile.metrics]
        keys = many if wanted.holds_many and many else [default_metric(profile)]
    chosen = [measure_named(profile, key) for key in dict.fromkeys(keys)]
    stacks = Stacks.of(profile, chosen)
    notices = tuple(
        f"{format_count(count)} call paths with a negative {measure.key} are left out: other "
        "viewers cannot show them"
        for measure, count in zip(chosen, np.count_nonzero(stacks.values < 0, axis=1), strict=True)
        if count
    )
    return Exported(wanted.encode(stacks.without_negative()), notices)
