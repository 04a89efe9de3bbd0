"""Modes of JAX for the search for errors that were on at the end of the run.

Needs the modes that the collector recorded, which older profiles do not have. Does not see a mode that the
program switched off before it ended, such as `with jax.debug_nans(True)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.jax import programs as jax_programs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepcontext.profiler.model.profile import Profile

_LEAST_LAUNCHES: Final = 100
_LEAST_OF_LINE: Final = 0.1


@dataclass(frozen=True, slots=True)
class _Mode:
    does: str
    searched: str


_READS: Final = "each launch waits for its results and looks through all of them"
_MODES: Final = {
    "jax_debug_nans": _Mode(_READS, "a NaN"),
    "jax_debug_infs": _Mode(_READS, "an infinite value"),
    "jax_disable_jit": _Mode(
        "jax.jit compiles nothing, so that each operation is a launch", "an error inside of jit"
    ),
}


def checks_left_on(profile: Profile) -> list[Finding]:
    """Return a finding if such modes are on in a program that launches many programs."""
    if not source_locations.has_jax(profile):
        return []
    modes = {each: _MODES[each] for each in jax_programs.checks(profile) if each in _MODES}
    launches = exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)
    if not modes or launches.sum() < _LEAST_LAUNCHES:
        return []
    programs = Query(profile, launches > 0).kind(FrameKind.OPERATOR)
    lines = source_locations.by_line(programs, source_locations.JAX_LAUNCHES)
    lines = [each for each in lines if each.value >= _LEAST_OF_LINE * launches.sum()] or lines[:1]
    nodes = [each.nodes[0] for each in lines]
    spent = int(exclusive_or_zeros(profile, HOST_TIME_NS.name)[programs.mask()].sum())
    # Computing takes as long as before, which a processor may do before a launch returns.
    saved = max(spent - total(profile, DEVICE_TIME_NS.name), 0)
    share = spent / max(total(profile, HOST_TIME_NS.name), 1)
    where = source_locations.location_text(profile, lines[0].frame)
    is_one = len(modes) == 1
    return [
        Finding(
            id="settings",
            severity=max(Severity.of_share(share), Severity.WARNING, key=lambda each: each.rank),
            title=(
                f"{_listed(modes)} {'is' if is_one else 'are'} on: "
                f"{'; '.join(dict.fromkeys(each.does for each in modes.values()))}; {lines[0].value:,} of "
                f"{int(launches.sum()):,} launches are at {where}"
            ),
            nodes=tuple(nodes)[:8],
            evidence={
                "launch_ns": spent,
                "launch_share": share,
                "launches_count": int(launches.sum()),
            },
            gain=source_locations.bound(
                profile,
                HOST_TIME_NS.name,
                saved,
                "launches cost nothing without the checks; computing takes as long as before",
            ),
            advice=(
                f"switch {'it' if is_one else 'them'} off except when searching for "
                f"{_listed(each.searched for each in modes.values())}: no "
                + ", ".join(f'jax.config.update("{each}", True)' for each in modes)
                + ", no "
                + ", ".join(f"{each.upper()}=1" for each in modes)
                + " in the environment"
            ),
            misleads="the program is being searched for such an error right now",
        )
    ]


def _listed(texts: Iterable[str]) -> str:
    return " and ".join(texts)
