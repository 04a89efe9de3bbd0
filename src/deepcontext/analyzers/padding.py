"""Padding: batches in buffers of a fixed size, most of which is never filled.

A function that makes a buffer and copies the samples of a batch into it shows how full the buffer is: by
the bytes of the samples, which the same function makes, and the bytes of the buffer. Silent where the
samples come from elsewhere, because their size is then unknown. What a loss ignores, and matrices of
zeros, are judged here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    called_by_user,
    called_modules,
    module_calls,
)
from deepcontext.analyzers.shared.ignored_targets import ignored_targets
from deepcontext.analyzers.shared.work_on_zeros import work_on_zeros
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_ALLOCATED: Final = "alloc_bytes"
_BUFFERS: Final = frozenset(
    f"aten::{name}" for name in ("zeros", "ones", "full", "empty", "new_zeros", "new_full")
)
_OF_VALUES: Final = "aten::lift_fresh"
_FILLS: Final = frozenset({"aten::copy_"})
# Fewer batches may all be exceptions.
_LEAST_BATCHES: Final = 5
_MOST_FILLED: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Buffers:
    """The buffers that one function makes and fills.

    Attributes:
        nodes: operators that make buffers, those with most bytes first.
        count: number of buffers.
        size_bytes: bytes of all buffers.
        filled_bytes: bytes of all samples copied into them.
    """

    nodes: tuple[int, ...]
    count: int
    size_bytes: int
    filled_bytes: int


def _find(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, HOST_TIME_NS.name)
    if not whole or _ALLOCATED not in profile.metrics:
        return []
    found = []
    for buffers in _buffers(profile):
        models = called_modules(profile)
        calls = module_calls(profile, models)
        spent = int(profile.inclusive(HOST_TIME_NS.name)[models].sum())
        # A buffer for each call of the model is a batch; others are caches and results.
        is_batch = (calls <= 2 * buffers.count) & (2 * calls >= buffers.count)
        if is_batch.any():
            finding = _finding(profile, buffers, spent, whole)
            found += [finding] if finding.severity is not Severity.INFO else []
    return [*found, *ignored_targets(profile), *work_on_zeros(profile)]


def _buffers(profile: Profile) -> list[_Buffers]:
    """Return the buffers of functions that make their samples themselves, and leave most of them empty."""
    tree, frames = profile.tree, profile.frames
    called = called_by_user(profile)
    makes = source_locations.operators(profile, _BUFFERS).mask() & called
    # `torch.tensor(values)` calls `empty`, too: that is a sample.
    samples_at = np.zeros(len(tree), np.bool_)
    samples_at[tree.parent[source_locations.operators(profile, {_OF_VALUES}).nodes()]] = True
    makes &= ~samples_at[tree.parent]
    fills = source_locations.operators(profile, _FILLS).mask() & called
    owner = nearest_user(profile)
    function = np.where(
        owner == NO_NODE,
        -1,
        ((frames.file.astype(np.int64) << 32) | frames.name)[tree.frame[owner]],
    )
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    size = profile.inclusive(_ALLOCATED)
    rows = profile.metrics[_ALLOCATED]
    inside = tree.at_or_below(makes)
    found = []
    for each in np.intersect1d(function[makes], function[fills]).tolist():
        nodes = np.flatnonzero(makes & (function == each))
        count = int(calls[nodes].max())
        copies = int(calls[fills & (function == each)].sum())
        samples = (function[rows.node] == each) & ~inside[rows.node]
        made = int(rows.count[samples].sum())
        size_bytes, filled_bytes = int(size[nodes].sum()), int(rows.total[samples].sum())
        # Samples that were made elsewhere are not among the bytes.
        is_known = count >= _LEAST_BATCHES and made >= copies >= count
        if is_known and filled_bytes <= _MOST_FILLED * size_bytes:
            nodes = nodes[np.argsort(-size[nodes], kind="stable")]
            found.append(_Buffers(tuple(nodes.tolist()), count, size_bytes, filled_bytes))
    return found


def _finding(profile: Profile, buffers: _Buffers, spent: int, whole: int) -> Finding:
    filled = buffers.filled_bytes / buffers.size_bytes
    # Attention takes the square of the length.
    saved = round(spent * (1 - filled * filled))
    owner = source_locations.climb(profile, np.array(buffers.nodes[:1]), profile.is_user_code())
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    return Finding(
        id="padding",
        severity=Severity.of_share(saved / whole),
        title=f"batches made at {where} are filled to {filled:.0%}: the model computes on the padding",
        nodes=buffers.nodes[:8],
        evidence={
            "batches_count": buffers.count,
            "buffer_bytes": buffers.size_bytes,
            "filled_bytes": buffers.filled_bytes,
            "padding_share": 1 - filled,
        },
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            saved,
            "the model's time is proportional to the square of the length, as attention's is",
        ),
        advice=(
            "pad to the longest sample of the batch instead of a fixed length "
            "(torch.nn.utils.rnn.pad_sequence), and put samples of similar length into one batch"
        ),
        misleads=(
            "the model needs one size, because it is compiled or captured for it; the samples are copied "
            "into a part of the buffer, and something else fills the rest"
        ),
    )


ANALYZER = Analyzer("padding", "is most of each batch padding, or ignored by the loss?", _find)
