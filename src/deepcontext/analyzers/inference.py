"""Inference: a model that runs on one sample at a time, or on the whole prefix for each new token.

Judges modules that no backward follows. Shapes are not needed: a sample gets its batch dimension from
`unsqueeze` (`x[None]`) before the call, and a prefix shows in what linear layers allocate, which grows
by the same amount from call to call. Invariant: loops whose next input depends on the result (a policy, a
recurrent state) are no batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.called_operators import (
    NO_FUNCTION,
    called_by_user,
    functions_of_nodes,
    module_calls,
)
from deepcontext.analyzers.shared.operator_names import DRAWS, JOINS, READS_VALUE
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_ALLOCATED: Final = "alloc_bytes"
_LEAST_SHARE: Final = 0.15
_LEAST_SAMPLES: Final = 100
_LEAST_TOKENS: Final = 20
# Operators of batches, or of large samples, take longer; shorter ones are mostly their call.
_MOST_OPERATOR_NS: Final = 50_000
_PICKS: Final = DRAWS | frozenset(
    f"aten::{name}" for name in ("argmax", "max", "topk", "sort", "multinomial")
)
_ADDS_BATCH: Final = frozenset({"aten::unsqueeze"})
# A loop over a tensor takes its rows.
_TAKES_ROWS: Final = frozenset({"aten::unbind"})
_CELLS: Final = ("lstm", "gru", "rnn")
# How well what a layer allocates must match sizes that grow by the same amount each time.
_TOLERANCE: Final = 0.1
_LEAST_GROWTH: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Model:
    """A module that a function of the user's calls, outside of other modules.

    Attributes:
        node: the module.
        calls: how often it was called.
        value: its time in operators, ns.
        function: number of the function.
    """

    node: int
    calls: int
    value: int
    function: int


@dataclass(frozen=True, slots=True)
class _Functions:
    """How often the functions of the user's code call some operators themselves."""

    profile: Profile
    of_node: Ints
    called: Mask
    calls: Ints

    def count(self, names: frozenset[str], function: int) -> int:
        """Return the number of calls of operators with these names by a function."""
        which = source_locations.operators(self.profile, names).mask() & self.called
        return int(self.calls[which & (self.of_node == function)].sum())


def _find(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, HOST_TIME_NS.name)
    if not whole or CALL_DURATION_NS.name not in profile.metrics:
        return []
    functions = _functions(profile)
    found = []
    for model in _models(profile, functions.of_node, _LEAST_SHARE * whole):
        if _computes_prefix_again(profile, functions, model):
            found.append(_prefix_finding(profile, model, whole))
        elif _takes_single_samples(profile, functions, model):
            found.append(_sample_finding(profile, model, whole))
    return found


def _functions(profile: Profile) -> _Functions:
    return _Functions(
        profile,
        functions_of_nodes(profile),
        called_by_user(profile, profile.is_user_code()),
        counts_or_zeros(profile, CALL_DURATION_NS.name),
    )


def _models(profile: Profile, of_node: Ints, least: float) -> list[_Model]:
    """Return the modules called outside of modules that no backward follows, the costliest first."""
    tree = profile.tree
    modules = profile.is_kind(FrameKind.MODULE)
    backward = tree.inclusive((tree.phase == Phase.BACKWARD).astype(np.int64))
    outermost = np.flatnonzero(
        modules & ~tree.below(modules) & (backward == 0) & (of_node != NO_FUNCTION)
    )
    value, calls = profile.inclusive(HOST_TIME_NS.name), module_calls(profile)
    return [
        _Model(node, int(calls[node]), int(value[node]), int(of_node[node]))
        for node in outermost[np.argsort(-value[outermost], kind="stable")].tolist()
        if value[node] >= least
    ]


def _takes_single_samples(profile: Profile, functions: _Functions, model: _Model) -> bool:
    """Return whether each call is for one sample that does not depend on the sample before."""
    if model.calls < _LEAST_SAMPLES:
        return False
    if functions.count(_ADDS_BATCH, model.function) < model.calls:
        return False
    if not functions.count(_TAKES_ROWS, model.function):
        return False
    # The next input may depend on a value that was read, drawn or appended.
    depends = functions.count(_PICKS | READS_VALUE | JOINS, model.function)
    names, mean_ns = _operators_of(profile, model)
    is_recurrent = any(cell in name for name in names for cell in _CELLS)
    return 2 * depends < model.calls and not is_recurrent and mean_ns <= _MOST_OPERATOR_NS


def _operators_of(profile: Profile, model: _Model) -> tuple[set[str], float]:
    """Return the names of a module's operators, and how long the outermost take at best, ns each."""
    inside = np.zeros(len(profile.tree), np.bool_)
    inside[model.node : int(profile.tree.subtree_end[model.node])] = True
    outermost = source_locations.outermost(Query(profile, inside).kind(FrameKind.OPERATOR)).nodes()
    names = {source_locations.base_name(profile.frame(node).name) for node in outermost.tolist()}
    rows = profile.metrics[CALL_DURATION_NS.name]
    of_model = np.isin(rows.node, outermost)
    calls = rows.count[of_model].astype(np.int64)
    shortest = rows.total[of_model] if rows.minimum is None else rows.minimum[of_model] * calls
    return names, int(shortest.sum()) / max(int(calls.sum()), 1)


def _computes_prefix_again(profile: Profile, functions: _Functions, model: _Model) -> bool:
    """Return whether the model's input grows by what the function picks from its output."""
    if model.calls < _LEAST_TOKENS:
        return False
    appended = functions.count(JOINS, model.function)
    picked = functions.count(_PICKS, model.function)
    if 2 * min(appended, picked) < model.calls:
        return False
    grows = _grows_evenly(profile, model)
    value = profile.inclusive(HOST_TIME_NS.name)
    linear = source_locations.operators(profile, {"aten::linear"}).nodes()
    end = int(profile.tree.subtree_end[model.node])
    linear = linear[(linear >= model.node) & (linear < end)]
    return int(value[linear[grows[linear]]].sum()) * 2 >= int(value[linear].sum()) > 0


def _grows_evenly(profile: Profile, model: _Model) -> Mask:
    """Return which linear layers allocate sizes that are spread evenly between two limits, shape (nodes,)."""
    tree = profile.tree
    found = np.zeros(len(tree), np.bool_)
    rows = profile.metrics.get(_ALLOCATED)
    if rows is None or rows.minimum is None or rows.maximum is None or rows.m2 is None:
        return found
    linear = tree.nearest(source_locations.operators(profile, {"aten::linear"}).mask())
    end = int(tree.subtree_end[model.node])
    low, high = rows.minimum.astype(np.float64), rows.maximum.astype(np.float64)
    mean = rows.total / np.maximum(rows.count, 1)
    deviation = np.sqrt(rows.m2 / np.maximum(rows.count, 1))
    # Source: the uniform distribution, mean (a + b) / 2 and deviation (b - a) / sqrt(12).
    is_even = np.abs(mean - (low + high) / 2) <= _TOLERANCE * mean
    is_even &= np.abs(deviation - (high - low) / np.sqrt(12)) <= _TOLERANCE * deviation
    is_even &= (high >= _LEAST_GROWTH * low) & (rows.count >= _LEAST_TOKENS)
    inside = (rows.node >= model.node) & (rows.node < end)
    which = linear[rows.node[is_even & inside]]
    found[which[which != NO_NODE]] = True
    return found


def _place(profile: Profile, model: _Model) -> tuple[str, str]:
    """Return the model's name, and the line that calls it."""
    owner = source_locations.climb(profile, np.array([model.node]), profile.is_user_code())
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    return profile.frame(model.node).name, where


def _sample_finding(profile: Profile, model: _Model, whole: int) -> Finding:
    name, where = _place(profile, model)
    share = model.value / whole
    return Finding(
        id="inference",
        severity=Severity.of_share(share),
        title=(
            f"{name} runs on one sample at a time at {where}, {model.calls:,} times: {share:.0%} of the "
            "time in operators"
        ),
        nodes=(model.node,),
        evidence={"model_ns": model.value, "model_share": share, "calls_count": model.calls},
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, model.value, "a batch costs no more than one sample"
        ),
        advice=(
            "give the model batches: several samples in one tensor (data.split(256), torch.stack, a "
            "DataLoader), padded to one length where their lengths differ"
        ),
        misleads="samples arrive one by one, and each must be answered at once",
    )


def _prefix_finding(profile: Profile, model: _Model, whole: int) -> Finding:
    name, where = _place(profile, model)
    share = model.value / whole
    return Finding(
        id="inference",
        severity=Severity.of_share(share),
        title=(
            f"{name} computes the whole prefix again for each token at {where}, {model.calls:,} times: "
            f"{share:.0%} of the time in operators"
        ),
        nodes=(model.node,),
        evidence={"model_ns": model.value, "model_share": share, "calls_count": model.calls},
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, model.value, "a step with a cache costs nothing"
        ),
        advice=(
            "keep the keys and values of earlier tokens (a KV cache: use_cache=True in transformers), and "
            "give the model only the new token"
        ),
        misleads=(
            "a new token changes the results for earlier ones (no causal mask), so that nothing can be "
            "kept"
        ),
    )


ANALYZER = Analyzer(
    "inference", "does a model run sample by sample, or on the same tokens again?", _find
)
