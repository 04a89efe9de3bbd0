"""The function of a dataset, transform or collation that making batches spends most time in, by line.

Works on samples, which see Python and libraries between operators. Does not judge whether loading
matters to the program (`data_loading.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import functions_of_nodes
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_FETCH: Final = "DatasetFetcher.fetch"
_WORKER: Final = "_worker_loop"
# Of the time in which batches are made; below it, no line stands out.
_LEAST_SHARE: Final = 0.3
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
# Of the function's time: a loop and its body, or a chain of calls, are one cause.
_LEAST_OF_FUNCTION: Final = 0.25
# Of the function's time: with less at the lines that are named, the text says whose time it is.
_MOST_OF_FUNCTION: Final = 0.8
# Of a worker's processor time: a worker that makes batches all the time may hold up the loop.
_LEAST_BUSY: Final = 0.5


@dataclass(frozen=True, slots=True)
class LoadingLine:
    """A function in which batches are made, and its costliest line.

    Attributes:
        frame: the line, of the user's code.
        places: text of the line, and of the function's other lines with much of its time.
        nodes: nodes with the time, those with most first.
        value: time in the function and in the libraries that it calls, ns.
        share: the same as a share of the time in which batches are made, 0 to 1.
        making_ns: all of that time.
        named: part of `value` at the lines that `places` names, 0 to 1.
    """

    frame: Frame
    places: str
    nodes: tuple[int, ...]
    value: int
    share: float
    making_ns: int
    named: float


def costliest(profile: Profile, loading: source_locations.Mask) -> LoadingLine | None:
    """Return the function with most of the time at and below the nodes `loading`, if one stands out."""
    if not is_sampled(profile.metrics):
        return None
    inside = profile.tree.at_or_below(loading)
    values = np.where(inside, exclusive_or_zeros(profile, ELAPSED_TIME_NS.name), 0)
    whole = int(values.sum())
    # A forked worker has lines of its parent above, and the loop's own line is above the loader.
    owner = nearest_user(profile)
    nodes = np.flatnonzero((values > 0) & (owner != NO_NODE) & inside[owner])
    if not len(nodes):
        return None
    # A comprehension is part of the function around it.
    of_node = functions_of_nodes(profile)[nodes]
    time = sums(of_node, values[nodes], int(of_node.max()) + 1)
    most = int(time.argmax())
    value = int(time[most])
    if value < max(_LEAST_NS, _LEAST_SHARE * whole):
        return None
    members = nodes[of_node == most]
    members = members[np.argsort(-values[members], kind="stable")]
    lines = Counter[Frame]()
    for node in members.tolist():
        lines[profile.frame(int(owner[node]))] += int(values[node])
    return LoadingLine(
        lines.most_common(1)[0][0],
        places_of(profile, lines),
        tuple(members.tolist()[:8]),
        value,
        value / whole,
        whole,
        sum(_named(lines).values()) / value,
    )


def _named(lines: Counter[Frame]) -> dict[Frame, int]:
    """Return the costliest line of a function, and its others with much of the function's time."""
    first, *others = lines.most_common()
    least = _LEAST_OF_FUNCTION * lines.total()
    return dict([first, *(each for each in others if each[1] >= least)])


def places_of(profile: Profile, lines: Counter[Frame]) -> str:
    """Return ``data.py:12 (tokenize) and data.py:13`` for the lines of one function."""
    first, *others = _named(lines)
    text = source_locations.location_text(profile, first)
    place = text.rpartition(" (")[0].rpartition(":")[0]
    more = sorted(frame.line for frame in others)
    return " and ".join([text, *(f"{place}:{line}" for line in more)])


def making_of_worker(profile: Profile) -> LoadingLine | None:
    """Return where a worker of a loader spends its time, if this is a worker's profile and it is busy."""
    fetch = source_locations.nodes_named(
        profile, FrameKind.PYTHON, lambda name: name.endswith(_FETCH)
    )
    loop = source_locations.nodes_named(profile, FrameKind.PYTHON, {_WORKER})
    fetch = fetch.under(loop)
    if not fetch.count():
        return None
    line = costliest(profile, fetch.mask())
    worked = sum(
        int(exclusive_or_zeros(profile, metric.name).sum())
        for metric in (SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS)
    )
    return line if line and line.value >= _LEAST_BUSY * worked else None


def text(line: LoadingLine) -> str:
    """Return ``83% of it at data.py:12 (tokenize)``; of many lines ``in tokenize, most at data.py:12``."""
    if line.named >= _MOST_OF_FUNCTION:
        return f"{line.share:.0%} of it at {line.places}"
    place, _, function = line.places.partition(" (")
    name, _, others = function.partition(")")
    return f"{line.share:.0%} of it in {name}, most at {place}{others}"


def cheaper(where: str) -> str:
    """Return what to do about a place in which samples are made."""
    return (
        f"make {where} cheaper: do it once when the dataset is made and keep the result, or on whole "
        "arrays (NumPy, torch) instead of element by element"
    )
