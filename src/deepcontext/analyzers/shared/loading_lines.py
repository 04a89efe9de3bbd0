"""The line of a dataset, transform or collate function that making batches spends most time at.

Works on samples, which see Python and libraries between operators. Does not judge whether loading
matters to the program (`data_loading.py`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS, is_sampled
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.loader_workers import LoaderTime

_FETCH: Final = "DatasetFetcher.fetch"
_WORKER: Final = "_worker_loop"
# Of the time in which batches are made; below it, no line stands out.
_LEAST_SHARE: Final = 0.3
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
# Of a worker's processor time: a worker that makes batches all the time may hold up the loop.
_LEAST_BUSY: Final = 0.5


@dataclass(frozen=True, slots=True)
class LoadingLine:
    """A line at which batches are made.

    Attributes:
        frame: the line, of the user's code.
        nodes: nodes with the time, those with most first.
        value: time at the line and in the libraries that it calls, ns.
        share: the same as a share of the time in which batches are made, 0 to 1.
        making_ns: all of that time.
    """

    frame: Frame
    nodes: tuple[int, ...]
    value: int
    share: float
    making_ns: int


def costliest(profile: Profile, loading: source_locations.Mask) -> LoadingLine | None:
    """Return the line with most of the time at and below the nodes `loading`, if one stands out."""
    if not is_sampled(profile.metrics):
        return None
    tree, frames = profile.tree, profile.frames
    inside = tree.at_or_below(loading)
    values = np.where(inside, exclusive_or_zeros(profile, ELAPSED_TIME_NS.name), 0)
    whole = int(values.sum())
    # A forked worker has lines of its parent above, and the loop's own line is above the loader.
    owner = tree.nearest(frames.is_user_code()[tree.frame] & inside)
    nodes = np.flatnonzero((values > 0) & (owner != NO_NODE))
    if not len(nodes):
        return None
    lines, of_node = np.unique(frames.source_line()[tree.frame[owner[nodes]]], return_inverse=True)
    time = sums(of_node, values[nodes], len(lines))
    most = int(time.argmax())
    value = int(time[most])
    if value < max(_LEAST_NS, _LEAST_SHARE * whole):
        return None
    members = nodes[of_node == most]
    members = members[np.argsort(-values[members], kind="stable")]
    frame = profile.frame(int(owner[members[0]]))
    return LoadingLine(frame, tuple(members.tolist()[:8]), value, value / whole, whole)


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
    if not finding.evidence.get("worker_count") or not times.lines:
        return finding
    frame, value = times.lines[0]
    share = value / times.making_ns
    if share < _LEAST_SHARE or value < _LEAST_NS:
        return finding
    where = source_locations.location_text(profile, frame)
    return dataclasses.replace(
        finding,
        title=f"{finding.title}; its workers spend {share:.0%} of their time at {where}",
        evidence={**finding.evidence, "line_ns": value, "line_share": share},
        advice=f"{_cheaper(where)}; or {finding.advice}",
    )


def text(profile: Profile, line: LoadingLine) -> str:
    """Return ``83% of it at data.py:12 (tokenize)``."""
    return f"{line.share:.0%} of it at {source_locations.location_text(profile, line.frame)}"


def advice(profile: Profile, line: LoadingLine) -> str:
    """Return what to do about the line."""
    return _cheaper(source_locations.location_text(profile, line.frame))


def _cheaper(where: str) -> str:
    return (
        f"make {where} cheaper: do it once when the dataset is made and keep the result, or on whole "
        "arrays (NumPy, torch) instead of element by element"
    )


def worker_finding(profile: Profile, line: LoadingLine) -> Finding:
    """Report where a worker of a DataLoader spends the time in which it makes batches."""
    where = source_locations.location_text(profile, line.frame)
    return Finding(
        id="data_loading",
        severity=Severity.WARNING,
        title=f"a DataLoader worker spends {line.share:.0%} of the time of making batches at {where}",
        nodes=line.nodes,
        evidence={"line_ns": line.value, "line_share": line.share, "making_ns": line.making_ns},
        gain=Gain(
            "elapsed time",
            line.value,
            line.share,
            "the line costs nothing, and the loop waits for it",
        ),
        advice=advice(profile, line),
        misleads="the loop does not wait for its batches, because the workers are ahead of it",
    )
