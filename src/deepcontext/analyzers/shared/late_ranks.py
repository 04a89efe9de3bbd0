"""Which ranks cost a job much because they come last to collectives, and at which line.

`straggler` tells them; `rank_imbalance` leaves those with a line to it: one cause, one finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.summaries.late_places import late_places
from deepcontext.profiler.summaries.late_ranks import by_lateness
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.late_places import LatePlace
    from deepcontext.profiler.summaries.late_ranks import LateRanks, RankDelays

# Share of a rank's elapsed time without set-up that a rank costs the others more than a usual rank does.
_LEAST_SHARE: Final = 0.05
LEAST_NS: Final = 100_000_000
# Where only some collectives were compared, a rank stands out by so many standard errors.
_ERRORS: Final = 2
# A line is named where it has this share of what the rank did longer than the others.
_MOST_OF: Final = 0.5


@dataclass(frozen=True, slots=True)
class Lateness:
    """How a job lost time to late ranks.

    Attributes:
        delays: all ranks.
        elapsed_ns: mean elapsed time of a rank.
        working_ns: the same without set-up.
        late: the ranks that stand out, each with the line that made it late; None where no line has
            most of it.
    """

    delays: LateRanks
    elapsed_ns: int
    working_ns: int
    late: tuple[tuple[RankDelays, LatePlace | None], ...]

    @property
    def with_line(self) -> frozenset[int]:
        """Numbers of the ranks that stand out and whose line is known."""
        return frozenset(row.rank for row, place in self.late if place is not None)


def lateness(profile: Profile) -> Lateness | None:
    """Return who was late; None where it is not known, or too little was measured to judge."""
    delays = by_lateness(profile)
    elapsed_ns = profile.run.wall_ns // (profile.run.ranks or 1)
    if delays is None or delays.reason or elapsed_ns < source_locations.LEAST_TOTAL_NS:
        return None
    working_ns = without_setup(profile, elapsed_ns)
    least = max(LEAST_NS, _LEAST_SHARE * working_ns)
    # Not the mean, which several late ranks raise.
    usual = sorted(delays.rows, key=lambda row: row.caused_ns)[(len(delays.rows) - 1) // 2]
    late = [
        row
        for row in delays.rows
        if row.caused_ns - usual.caused_ns >= max(least, _ERRORS * (row.error_ns + usual.error_ns))
    ]
    placed = tuple((row, _place(profile, row.rank)) for row in late)
    return Lateness(delays, elapsed_ns, working_ns, placed)


def without_setup(profile: Profile, elapsed_ns: int) -> int:
    """Return the mean elapsed time of a rank without importing and compiling.

    A longer run has more of this time only, so what is worth telling is judged against it.
    """
    setup = setup_time(profile)
    if setup is None or not setup.elapsed_ns:
        return elapsed_ns
    return round(elapsed_ns * setup.working_ns / setup.elapsed_ns)


def _place(profile: Profile, rank: int) -> LatePlace | None:
    places = late_places(profile, rank)
    return places[0] if places and places[0].frame and places[0].share >= _MOST_OF else None
