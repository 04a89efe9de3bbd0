"""Data loading: the step waits for its batch, or its sampler, or there are more workers than cores.

Names the line of the dataset, transform or collate function that takes most of the time, in the loop's
own process and in the profile of a worker (`shared/loading_lines.py`), or datasets that wrap each other
(`shared/nested_datasets.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import handed_over, loading_lines, source_locations
from deepcontext.analyzers.shared.nested_datasets import nested_datasets
from deepcontext.analyzers.shared.samplers import busy_sampler
from deepcontext.analyzers.shared.worker_waits import LEAST_SHARE_WITH_WORKERS
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS, SAMPLED_READY_TIME_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros, total
from deepcontext.profiler.summaries.loader_workers import iterators_with_workers

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.query import Query

# A loader in the same process computes, which may be most of a small model's work.
_LEAST_SHARE: Final = 0.25
# Rows of tensors that are in memory already: slicing a batch costs next to nothing.
_LEAST_SHARE_IN_MEMORY: Final = 0.10
# Reads of single elements for each batch, from which on a batch is made of rows.
_LEAST_ROWS: Final = 8
# Starting a worker takes tenths of a second.
_LEAST_TO_START_NS: Final = 250_000_000
_WORKERS: Final = "_MultiProcessingDataLoaderIter"


def _find(profile: Profile) -> list[Finding]:
    if made := loading_lines.making_of_worker(profile):
        return [loading_lines.worker_finding(made)]
    whole = source_locations.judged_total(profile, HOST_TIME_NS.name)
    scopes = source_locations.outermost(
        source_locations.scopes(profile, source_locations.LOADER_SCOPE)
    )
    if not whole or not scopes.count():
        return []
    value = scopes.total(HOST_TIME_NS.name, inclusive=True)
    workers = _workers_per_loader(profile, scopes)
    sampling = busy_sampler(profile) if workers else []
    # The loop waits for what the sampler takes; one cause is one finding.
    sampled = sum(int(each.evidence["sampler_ns"]) for each in sampling)
    once = _start_up_ns(profile, scopes) + _shut_down_ns(profile, scopes)
    # A loop that lacks a processor waits for other programs, whatever its loader does.
    lacking = _lacking_ns(profile, scopes) if workers else 0
    share = (value - once - sampled - lacking) / whole
    in_memory = not workers and _rows_a_batch(profile, scopes) >= _LEAST_ROWS
    least = (
        LEAST_SHARE_WITH_WORKERS
        if workers
        else _LEAST_SHARE_IN_MEMORY
        if in_memory
        else _LEAST_SHARE
    )
    findings = []
    crowded = source_locations.crowded_ns(profile)
    handed = _handed_over(profile, scopes, value) if workers and share >= least else None
    # Workers are separate processes. If other programs took this process's cores, they also took the
    # workers' cores, and the wait says nothing about the loader.
    if handed:
        findings.append(handed)
    elif share >= least and not (workers and crowded):
        # Workers start once, in a long run as in a short one.
        waited = value - once - sampled if workers else value
        findings.append(_waiting(profile, scopes, waited, workers, in_memory=in_memory))
    if workers > profile.run.cpu_count > 0 and (share >= least or crowded):
        findings.append(_oversubscribed(profile, scopes, value + crowded, workers))
    return [*findings, *sampling]


def _lacking_ns(profile: Profile, scopes: Query) -> int:
    """Return the time in which the loop could have taken a batch, but had no processor, ns."""
    ready = exclusive_or_zeros(profile, SAMPLED_READY_TIME_NS.name)
    return int(ready[profile.tree.at_or_below(scopes.mask())].sum())


def _start_up_ns(profile: Profile, scopes: Query) -> int:
    """Return the start-up time of workers: each loader's longest call minus the mean of the others."""
    rows = profile.metrics.get(CALL_DURATION_NS.name)
    if rows is None or rows.maximum is None:
        return 0
    of_loaders = scopes.mask()[rows.node] & (rows.count > 1)
    count, total, longest = rows.count[of_loaders], rows.total[of_loaders], rows.maximum[of_loaders]
    return int((longest - (total - longest) // np.maximum(count - 1, 1)).sum())


def _shut_down_ns(profile: Profile, scopes: Query) -> int:
    """Return the time in which an iterator ends its workers: the mean, as the loop ends once."""
    ends = source_locations.nodes_named(
        profile, FrameKind.PYTHON, {f"{_WORKERS}._shutdown_workers"}
    ).under(scopes)
    if not ends.count():
        return 0
    elapsed = exclusive_or_zeros(profile, ELAPSED_TIME_NS.name)
    spent = int(elapsed[profile.tree.at_or_below(ends.mask())].sum())
    return spent // max(iterators_with_workers(profile), 1)


def _handed_over(profile: Profile, scopes: Query, value: int) -> Finding | None:
    calls = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[scopes.nodes()].sum())
    # The last call of an epoch returns no batch.
    batches = calls - iterators_with_workers(profile)
    return handed_over.finding(profile, scopes, value, batches)


def _rows_a_batch(profile: Profile, scopes: Query) -> float:
    """Return how many rows of tensors a torch.utils.data.TensorDataset reads for each batch."""
    rows = source_locations.nodes_named(
        profile, FrameKind.PYTHON, lambda name: name.startswith("TensorDataset.__getitem__")
    ).under(scopes)
    reads = source_locations.operators(profile, {"aten::select"}).under(rows).nodes()
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    return float(calls[reads].max(initial=0) / max(int(calls[scopes.nodes()].sum()), 1))


def _waiting(
    profile: Profile, scopes: Query, value: int, workers: int, *, in_memory: bool
) -> Finding:
    location = source_locations.by_line(scopes, HOST_TIME_NS.name)[0]
    share = value / total(profile, HOST_TIME_NS.name)
    where = source_locations.location_text(profile, location.frame)
    cores = profile.run.cpu_count
    nested = None if workers else nested_datasets(profile, scopes.mask())
    line = None if workers or nested else loading_lines.costliest(profile, scopes.mask())
    cause = line or nested
    pays = workers or cause or in_memory or value >= _LEAST_TO_START_NS
    return Finding(
        id="data_loading",
        severity=Severity.of_share(share) if pays else Severity.INFO,
        title=f"{share:.0%} of the time the program waits for data at {where}"
        + (f", {loading_lines.text(line)}" if line else "")
        + (
            f", {nested.share:.0%} of it to pass through {nested.levels} levels of {nested.name}"
            if nested
            else ""
        ),
        nodes=(*(cause.nodes if cause else ()), *scopes.nodes().tolist())[:8],
        evidence={
            "wait_ns": value,
            "wait_share": share,
            "batches_count": int(
                counts_or_zeros(profile, CALL_DURATION_NS.name)[scopes.nodes()].sum()
            ),
            "worker_count": workers,
            "core_count": cores,
            **({"line_ns": line.value, "line_share": line.share} if line else {}),
            **({"levels_ns": nested.value, "levels_count": nested.levels} if nested else {}),
        },
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, value, "every batch is ready when it is needed"
        ),
        advice=_FLATTEN if nested else _advice(line, cores, workers, in_memory=in_memory),
        misleads=(
            "the program does little else, as in a benchmark of the loader or a very short run; the "
            "model already keeps the cores busy, so workers would take cores from it"
        ),
    )


_FLATTEN: Final = (
    "the datasets wrap each other, and each sample passes through all levels: keep the parts in a flat list "
    "and make one dataset of it again after each change (ConcatDataset(parts), a Subset of the innermost "
    "dataset, or one wrapper that holds all changes)"
)


def _advice(
    line: loading_lines.LoadingLine | None, cores: int, workers: int, *, in_memory: bool
) -> str:
    """Return what to do about a loader, and about the line that stands out."""
    if workers:
        advice = (
            f"{_number(workers)} not keep up: make the samples cheaper (decode and augment less, "
            "store them ready to use), batch in the dataset with __getitems__, raise "
            "prefetch_factor, keep workers alive with persistent_workers=True"
        )
    elif in_memory:
        advice = (
            "the data lies in tensors already: take a whole batch at once instead of collating rows "
            "(for rows in torch.randperm(count).split(size): data[rows]; or a BatchSampler as sampler "
            "with batch_size=None)"
        )
    else:
        advice = (
            f"load in the background: {_advised_workers(cores)}, persistent_workers=True; if samples "
            "are cheap, fetch whole batches at once (__getitems__, or slices of one tensor) instead "
            "of collating samples"
        )
    if line:
        advice = f"{loading_lines.advice(line)}; or {advice}"
    return f"{advice}; with a GPU also pin_memory=True and .to(device, non_blocking=True)"


def _number(workers: int) -> str:
    return "1 worker does" if workers == 1 else f"{workers} workers do"


def _advised_workers(cores: int) -> str:
    most = max(cores - 1, 1)
    number = "num_workers=1" if most == 1 else f"num_workers from 1 to {most}"
    return f"{number} on {'this 1 core' if cores == 1 else f'these {cores} cores'}"


def _oversubscribed(profile: Profile, scopes: Query, lost: int, workers: int) -> Finding:
    cores = profile.run.cpu_count
    location = source_locations.by_line(scopes, HOST_TIME_NS.name)[0]
    return Finding(
        id="data_loading",
        severity=Severity.WARNING,
        title=(
            f"{workers} loader workers share {cores} cores at "
            f"{source_locations.location_text(profile, location.frame)}"
        ),
        nodes=tuple(scopes.nodes().tolist()[:8]),
        evidence={"worker_count": workers, "core_count": cores, "lost_ns": lost},
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            lost,
            "every batch is ready when it is needed, and the training loop always has its core",
        ),
        advice=f"start no more workers than cores ({cores}), and leave one for the training loop",
        misleads="the workers sleep most of the time, waiting for a disk or a network",
    )


def _workers_per_loader(profile: Profile, scopes: Query) -> int:
    """Return the forked processes per iterator with workers, 0 without workers.

    The number of workers is not recorded, but forked children and iterators are.
    """
    names = [profile.frame(node).name for node in scopes.nodes().tolist()]
    if not any(_WORKERS in name for name in names):
        return 0
    children = profile.trust.counters.get("forked_children", 0)
    return max(children // max(iterators_with_workers(profile), 1), 1)


ANALYZER = Analyzer("data_loading", "does the step wait for its data?", _find)
