"""Does the step wait for its data: for a line of the dataset, or for workers?

Names the line of the dataset, transform or collate function that takes most of the time, in the loop's own
process and in the profile of a worker (`shared/loading_lines.py`). What a change can save with the workers'
profiles is added by `shared/worker_waits.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import ELAPSED, HOST, Cause, at_place
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import loading_lines
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.worker_waits import LEAST_SHARE_WITH_WORKERS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.loader_workers import iterators_with_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.query import Query

# A loader in the same process computes, which may be most of a small model's work; rows of tensors that are
# in memory already cost next to nothing to slice.
_LEAST_SHARE: Final = 0.25
_LEAST_SHARE_IN_MEMORY: Final = 0.10
_FEWEST_ROWS: Final = 8
# Starting a worker takes tenths of a second.
_LEAST_TO_START_NS: Final = 250_000_000
_WITH_WORKERS: Final = "_MultiProcessingDataLoaderIter"


def find(profile: Profile) -> Iterator[Cause]:
    """Return what a loop waits for when it takes a batch."""
    if made := loading_lines.making_of_worker(profile):
        yield _of_worker(made)
        return
    whole = at.judged_total(profile, HOST)
    scopes = at.outermost(at.scopes(profile, at.LOADER_SCOPE))
    if not whole or not scopes.count():
        return
    value, workers = scopes.total(HOST, inclusive=True), _workers_per_loader(profile, scopes)
    # Workers start and end once, in a long run as in a short one.
    once = _starting_ns(profile, scopes) + _ending_ns(profile, scopes)
    # A loop that lacks a processor waits for other programs, whatever its loader does.
    ready = exclusive_or_zeros(profile, SAMPLED_READY_TIME_NS.name)
    inside = profile.tree.at_or_below(scopes.mask())
    lacking = int(ready[inside].sum()) if workers else 0
    share = (value - once - lacking) / whole
    in_memory = not workers and _rows_a_batch(profile, scopes) >= _FEWEST_ROWS
    least = LEAST_SHARE_WITH_WORKERS if workers else _LEAST_SHARE
    least = _LEAST_SHARE_IN_MEMORY if in_memory else least
    crowded = at.crowded_ns(profile)
    waited = value - once if workers else value
    # If other programs took this process's cores, they also took the workers', and the wait says nothing.
    if share >= least and not (workers and crowded):
        yield _waiting(profile, scopes, waited, workers, in_memory=in_memory)
    if workers > profile.run.cpu_count > 0 and (share >= least or crowded):
        yield _of_scopes(
            scopes,
            "more_workers_than_cores",
            value=value + crowded,
            words={"workers": workers, "cores": profile.run.cpu_count},
            evidence={"worker_count": workers, "core_count": profile.run.cpu_count},
        )


def _of_scopes(scopes: Query, key: str, **more: Any) -> Cause:
    """Return a cause at the line that takes batches."""
    nodes = scopes.nodes().tolist()
    more["shown"] = (*more.get("shown", ()), *nodes)
    return at_place(key, at.by_line(scopes, HOST)[0], nodes=nodes, **more)


def _of_worker(line: loading_lines.LoadingLine) -> Cause:
    return Cause(
        key="line_of_worker",
        nodes=line.nodes,
        frame=line.frame,
        metric=ELAPSED,
        value=line.value,
        whole=line.making_ns,
        words={"line": line.places, "advice": loading_lines.cheaper(line.places)},
        evidence={"making_ns": line.making_ns},
    )


def _starting_ns(profile: Profile, scopes: Query) -> int:
    """Return the start-up time of workers: each loader's longest call minus the mean of the others."""
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    if rows is None or rows.maximum is None:
        return 0
    of_loaders = scopes.mask()[rows.node] & (rows.count > 1)
    count, spent, longest = rows.count[of_loaders], rows.total[of_loaders], rows.maximum[of_loaders]
    return int((longest - (spent - longest) // np.maximum(count - 1, 1)).sum())


def _ending_ns(profile: Profile, scopes: Query) -> int:
    """Return the time in which an iterator ends its workers: the mean, as the loop ends once."""
    ends = at.nodes_named(profile, FrameKind.PYTHON, {f"{_WITH_WORKERS}._shutdown_workers"})
    inside = profile.tree.at_or_below(ends.under(scopes).mask())
    spent = int(exclusive_or_zeros(profile, ELAPSED_TIME_NS.name)[inside].sum())
    return spent // max(iterators_with_workers(profile), 1)


def _rows_a_batch(profile: Profile, scopes: Query) -> float:
    """Return how many rows of tensors a dataset in memory reads for each batch."""
    rows = at.nodes_named(
        profile, FrameKind.PYTHON, lambda name: name.startswith("TensorDataset.__getitem__")
    ).under(scopes)
    taken = at.operators(profile, catalogue.operators("takes_element")).under(rows).nodes()
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    return float(calls[taken].max(initial=0) / max(int(calls[scopes.nodes()].sum()), 1))


def _workers_per_loader(profile: Profile, scopes: Query) -> int:
    """Return the forked processes per iterator with workers, 0 without workers.

    The number of workers is not recorded, but forked children and iterators are.
    """
    names = [profile.frame(node).name for node in scopes.nodes().tolist()]
    if not any(_WITH_WORKERS in name for name in names):
        return 0
    children = profile.trust.counters.get("forked_children", 0)
    # Children are those of the whole run.
    return max(children // max(iterators_with_workers(basis_of(profile).whole), 1), 1)


def _waiting(
    profile: Profile, scopes: Query, value: int, workers: int, *, in_memory: bool
) -> Cause:
    cores = profile.run.cpu_count
    # With workers, what the loop's own process does: a sampler that loads.
    line = loading_lines.costliest(profile, scopes.mask())
    pays = workers or line or in_memory or value >= _LEAST_TO_START_NS
    advice = _advice(line, cores, workers, in_memory=in_memory)
    text = f", {loading_lines.text(line)}" if line else ""
    return _of_scopes(
        scopes,
        "waiting_for_data",
        value=value,
        shown=line.nodes if line else (),
        severity=None if pays else Severity.INFO,
        words={"line": text, "advice": advice},
        evidence={
            "wait_ns": value,
            "worker_count": workers,
            "core_count": cores,
            **({"line_ns": line.value, "line_share": line.share} if line else {}),
        },
    )


def _advice(
    line: loading_lines.LoadingLine | None, cores: int, workers: int, *, in_memory: bool
) -> str:
    """Return what to do about a loader, and about the line that stands out."""
    if workers:
        advice = (
            f"{workers} worker{'s do' if workers > 1 else ' does'} not keep up: make the samples "
            "cheaper (decode and augment less, store them ready to use), batch in the dataset "
            "with __getitems__, raise prefetch_factor, keep workers alive with "
            "persistent_workers=True"
        )
    elif in_memory:
        advice = (
            "the data lies in tensors already: take a whole batch at once instead of collating "
            "rows (for rows in torch.randperm(count).split(size): data[rows]; or a BatchSampler "
            "as sampler with batch_size=None)"
        )
    else:
        most = max(cores - 1, 1)
        number = "num_workers=1" if most == 1 else f"num_workers from 1 to {most}"
        where = "this 1 core" if cores == 1 else f"these {cores} cores"
        advice = (
            f"load in the background: {number} on {where}, persistent_workers=True; if samples are "
            "cheap, fetch whole batches at once (__getitems__, or slices of one tensor) instead of "
            "collating samples"
        )
    if line:
        advice = f"{loading_lines.cheaper(line.places)}; or {advice}"
    return f"{advice}; with a GPU also pin_memory=True and .to(device, non_blocking=True)"
