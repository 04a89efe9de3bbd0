"""What a reader of another tool's format is, and what it makes of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.importing.source_file import SourceFile
    from deepcontext.profiler.importing.tree_builder import TreeBuilder
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.profiler.model.trust import CollectorReport


# Makes correlation ids of several processes in one file distinct: added once for each; ids have 32 bits.
PROCESS_STEP: Final = 1 << 34


@dataclass(frozen=True, slots=True)
class Reading:
    """What was in a file, for the trust report.

    Attributes:
        producer: the tool that wrote the file, with its version if the file has it.
        counts: numbers of events by outcome: read, matched, unmatched, unknown.
        parts: what the file has of each part of a profile, named as the collectors are, and what it lacks.
        notes: what a reader must know before trusting the figures.
        details: further facts by name.
    """

    producer: str
    counts: Mapping[str, int]
    parts: tuple[CollectorReport, ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a profile is made from.

    Attributes:
        builder: the tree with its metrics.
        run: what is known about the run.
        reading: what was in the file.
        sections: named payloads by name; those that refer to nodes are made by `TreeBuilder.section`.
    """

    builder: TreeBuilder
    run: RunInfo
    reading: Reading
    sections: Mapping[str, bytes] = field(default_factory=dict)


class Reader(Protocol):
    """Reads one format."""

    @property
    def name(self) -> str:
        """Name of the format in messages, with its article: "a trace of torch.profiler"."""
        ...

    def recognises(self, head: bytes) -> bool:
        """Return whether a file with these first bytes, decompressed, may be of the format."""
        ...

    def read(self, file: SourceFile) -> Contents:
        """Read a file.

        Raises:
            ProfileDataError: the file is damaged or not of the format.
            KeyError, TypeError, ...: a field is missing or of another type (`opening.py`).
        """
        ...
