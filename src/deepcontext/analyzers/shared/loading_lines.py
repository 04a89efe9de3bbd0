"""The function of a dataset, transform or collation that making batches spends most time in, by line.

Works on samples, which see Python and libraries between operators. Does not judge whether loading
matters to the program (`data_loading.py`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import (
    handed_over,
    naive_einsum,
    source_locations,
    worker_waits,
)
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.frame_table import FrameTable
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.loader_workers import LoaderTime

_FETCH: Final = "DatasetFetcher.fetch"
_WORKER: Final = "_worker_loop"
# Of the time in which batches are made; below it, no line stands out.
_LEAST_SHARE: Final = 0.3
# The loop is known to wait for its workers, so that the costliest function is worth naming.
_LEAST_SHARE_OF_WORKERS: Final = 0.15
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
# Of the function's time: a loop and its body, or a chain of calls, are one cause.
_LEAST_OF_FUNCTION: Final = 0.25
# Of a function's time in workers, from which on it consists of operators and of libraries' own code.
_OPERATORS: Final = 0.5
# Time of a line, as a multiple of that of copying the samples into batches. Drawing one random number for
# each element and adding it took nine times as long as copying the elements.
_MOST_PASSES: Final = 15
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
        is_einsum: whether most of it is in calls of NumPy's einsum without a path.
    """

    frame: Frame
    places: str
    nodes: tuple[int, ...]
    value: int
    share: float
    making_ns: int
    is_einsum: bool


def costliest(profile: Profile, loading: source_locations.Mask) -> LoadingLine | None:
    """Return the function with most of the time at and below the nodes `loading`, if one stands out."""
    if not is_sampled(profile.metrics):
        return None
    tree, frames = profile.tree, profile.frames
    inside = tree.at_or_below(loading)
    values = np.where(inside, exclusive_or_zeros(profile, ELAPSED_TIME_NS.name), 0)
    whole = int(values.sum())
    # A forked worker has lines of its parent above, and the loop's own line is above the loader.
    owner = tree.nearest(profile.is_user_code()[tree.frame] & inside)
    nodes = np.flatnonzero((values > 0) & (owner != NO_NODE))
    if not len(nodes):
        return None
    numbers: dict[tuple[int, str], int] = {}
    of_node = np.array([
        numbers.setdefault((int(frames.file[frame]), _function(frames, frame)), len(numbers))
        for frame in tree.frame[owner[nodes]].tolist()
    ])
    time = sums(of_node, values[nodes], len(numbers))
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
        _places(profile, lines),
        tuple(members.tolist()[:8]),
        value,
        value / whole,
        whole,
        naive_einsum.is_naive_einsum(profile, tuple(members.tolist())),
    )


def _function(frames: FrameTable, frame: int) -> str:
    """Return the name of a frame's function; a comprehension is part of the function around it."""
    return source_locations.without_inner(frames.strings[int(frames.name[frame])])


def _places(profile: Profile, lines: Counter[Frame]) -> str:
    """Return ``data.py:12 (tokenize) and data.py:13`` for the lines of one function."""
    (first, _), *others = lines.most_common()
    text = source_locations.location_text(profile, first)
    place = text.rpartition(" (")[0].rpartition(":")[0]
    more = sorted(
        frame.line for frame, value in others if value >= _LEAST_OF_FUNCTION * lines.total()
    )
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


def with_workers(profile: Profile, finding: Finding, times: LoaderTime) -> Finding:
    """Return a finding about a waiting loop with the line at which its workers spend most time."""
    if "hand_over_ns" in finding.evidence:
        return handed_over.with_workers(profile, finding, times)
    # A finding about more workers than cores has no time of waiting.
    is_wait = finding.evidence.get("worker_count") and "wait_ns" in finding.evidence
    if not is_wait or not times.lines:
        return finding
    wait = worker_waits.wait_of(profile, times, int(finding.evidence["wait_ns"]))
    if wait.is_idle:
        finding = dataclasses.replace(finding, advice=_IDLE_ADVICE)
        return worker_waits.judged(profile, finding, wait, wait.saved_without_workers())
    of_function: dict[tuple[str, str], Counter[Frame]] = {}
    for frame, value in times.lines:
        of_function.setdefault((frame.file, frame.name), Counter())[frame] = value
    lines = max(of_function.values(), key=Counter.total)
    value = lines.total()
    share = value / times.making_ns
    is_known = share >= _LEAST_SHARE_OF_WORKERS and value >= _LEAST_NS
    # Operators work on whole tensors already; Python and calls for each sample can be avoided.
    is_whole = _works_on_whole_arrays(times, lines)
    if is_known and not wait.is_asleep and not is_whole:
        advice, saved = _cheaper(_places(profile, lines)), wait.saved_by_line(share)
    else:
        saved = wait.saved_by_more_workers()
        advice = _MORE_WORKERS if wait.is_asleep else _MORE_PROCESSORS if saved else ""
    if is_known:
        verb = "wait" if wait.is_asleep else "spend"
        finding = dataclasses.replace(
            finding,
            title=f"{finding.title}; its workers {verb} {share:.0%} of their time at "
            f"{_places(profile, lines)}",
            evidence={**finding.evidence, "line_ns": value, "line_share": share},
        )
    if advice:
        finding = dataclasses.replace(finding, advice=f"{advice}; or {finding.advice}")
    return worker_waits.judged(profile, finding, wait, saved)


def _works_on_whole_arrays(times: LoaderTime, lines: Counter[Frame]) -> bool:
    """Return whether the lines of a function mostly compute on whole arrays, which leaves little to save.

    These are operators, and libraries that need no lock of Python's, if their time is that of a few passes
    over the batch. A library that takes longer does more than the batch shows, for example on a larger
    picture.
    """
    value = lines.total()
    in_operators, in_libraries = (
        sum(time for frame, time in rows if frame in lines)
        for rows in (times.in_operators, times.in_libraries)
    )
    if value > _MOST_PASSES * times.copying_ns:
        in_libraries = 0
    return in_operators + in_libraries >= _OPERATORS * value


_MORE_WORKERS: Final = (
    "start more workers, also more than cores: they wait for a disk, a network or a lock, and use no "
    "processor meanwhile"
)
_MORE_PROCESSORS: Final = (
    "start more workers: they make batches all the time, and processors are idle meanwhile"
)
_IDLE_ADVICE: Final = (
    "load without workers (num_workers=0): they make all batches in a fraction of the time in which the "
    "loop waits, which goes into starting the workers and handing the batches over; if workers are needed "
    "in longer epochs, keep them alive with persistent_workers=True"
)


def text(line: LoadingLine) -> str:
    """Return ``83% of it at data.py:12 (tokenize)``."""
    return f"{line.share:.0%} of it at {line.places}"


def advice(line: LoadingLine) -> str:
    """Return what to do about the line."""
    if line.is_einsum:
        return f"make {line.places} cheaper: {naive_einsum.ADVICE}"
    return _cheaper(line.places)


def _cheaper(where: str) -> str:
    return (
        f"make {where} cheaper: do it once when the dataset is made and keep the result, or on whole "
        "arrays (NumPy, torch) instead of element by element"
    )


def worker_finding(line: LoadingLine) -> Finding:
    """Report where a worker of a DataLoader spends the time in which it makes batches."""
    return Finding(
        id="data_loading",
        severity=Severity.WARNING,
        title=(
            f"a DataLoader worker spends {line.share:.0%} of the time of making batches at "
            f"{line.places}"
        ),
        nodes=line.nodes,
        evidence={"line_ns": line.value, "line_share": line.share, "making_ns": line.making_ns},
        gain=Gain(
            "elapsed time",
            line.value,
            line.share,
            "the line costs nothing, and the loop waits for it",
        ),
        advice=advice(line),
        misleads="the loop does not wait for its batches, because the workers are ahead of it",
    )
