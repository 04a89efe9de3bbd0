"""The interface between a session and its sources of measurements.

Does not name any source; the facade passes the sources to the session. Invariant: a collector that cannot
run says why, and neither breaks nor changes the program under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.frame import FrameKind, Phase
    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.format.status import Outcome
    from deepcontext.profiler.recording.options import SessionOptions
    from deepcontext.profiler.recording.rank import Rank


@dataclass(frozen=True, slots=True)
class Availability:
    """Answer of a probe.

    Attributes:
        available: the collector can run on this machine, in this process.
        reason: why not, and what to do; or what it found.
    """

    available: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PhaseRule:
    """Gives frames of one kind a phase, by name and file.

    Attributes:
        kind: kind of the frames.
        name: exact frame name, or its beginning when it ends in ``*``; "" matches every name.
        file: ending of the frame's file; "" matches every file.
        phase: phase of the frame, and of frames below it unless another rule matches them.
    """

    kind: FrameKind
    name: str
    file: str
    phase: Phase

    def matches(self, name: str, file: str) -> bool:
        """Return whether a frame of this rule's kind falls under the rule."""
        if self.name.endswith("*"):
            return name.startswith(self.name[:-1]) and file.endswith(self.file)
        return self.name in {"", name} and file.endswith(self.file)


@runtime_checkable
class StepObserver(Protocol):
    """A collector that wants to know when a step of the program's main loop ends."""

    def on_step(self) -> None:
        """A step has ended. Runs on the program's thread: must be quick and must not raise."""
        ...


@runtime_checkable
class TimeCharger(Protocol):
    """A collector that charges elapsed time, and must not charge that of the profiler's own stop."""

    def charged_from_ns(self) -> int:
        """Return the begin of the measured time, in ns of `clock.monotonic_ns`, 0 if nothing is measured.

        Called after the start.
        """
        ...

    def charge_no_more(self) -> int:
        """The measured time is over: called before anything else of the stop.

        Returns:
            The end of the measured time, in ns of `clock.monotonic_ns`. What happens after it, such as a wait
            for the GIL, belongs to the stop.
        """
        ...


@runtime_checkable
class ImportWaiter(Protocol):
    """A collector that starts when the program loads a framework."""

    def notice_import(self) -> None:
        """Start now if the framework was loaded unnoticed: called before each snapshot."""
        ...


@runtime_checkable
class RankSource(Protocol):
    """A collector whose framework may know which process of a job this is."""

    @property
    def name(self) -> str:
        """Name of the collector."""
        ...

    def rank(self) -> Rank | None:
        """Return the rank; None for a single process. Called for each snapshot, on its thread."""
        ...


class Collector(Protocol):
    """One source of measurements."""

    @property
    def name(self) -> str:
        """Name in the trust report and in `doctor`."""
        ...

    @property
    def phase_rules(self) -> Sequence[PhaseRule]:
        """Phases that this source's frames imply."""
        ...

    @property
    def metrics(self) -> Sequence[MetricDescriptor]:
        """Metrics that this source adds to nodes, under the names that the native core uses."""
        ...

    def probe(self) -> Availability:
        """Say whether the source could be collected from here and now; change nothing."""
        ...

    def start(self, options: SessionOptions) -> None:
        """Begin, or arrange to begin when the program loads what is to be observed."""
        ...

    def stop(self) -> None:
        """End, leaving nothing behind in the program."""
        ...

    def settle(self) -> None:
        """Complete names and late records before the tree is read."""
        ...

    def outcome(self) -> Outcome:
        """Say how it went."""
        ...

    def sections(self) -> Mapping[str, bytes]:
        """Return named payloads for the profile file, usually JSON; called while it runs, too."""
        ...
