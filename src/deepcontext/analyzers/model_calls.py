"""Model calls: a model that runs on one sample or token at a time, or that computes earlier results again.

Earlier results are the prefix of a text, for each new token, or all values so far (`shared/growing_work.py`).
Weights that each forward builds (`shared/built_weights.py`), and parts that compute the same in each call
(`shared/repeated_inputs.py`), are judged here, too.
Judges modules that the program calls outside of other modules (`shared/model_runs.py`). Shapes are not
needed: a prefix shows in what linear layers allocate, which grows by the same amount from call to call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.built_weights import built_weights
from deepcontext.analyzers.shared.growing_work import growing_work
from deepcontext.analyzers.shared.model_runs import (
    LEAST_SHARE,
    PICKS,
    Functions,
    Model,
    functions_of,
    models,
    takes_single_samples,
)
from deepcontext.analyzers.shared.operator_names import JOINS
from deepcontext.analyzers.shared.repeated_inputs import repeated_inputs
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Ints = source_locations.Ints
    Mask = source_locations.Mask

_ALLOCATED: Final = "alloc_bytes"
_LEAST_TOKENS: Final = 20
# How well what a layer allocates must match sizes that grow by the same amount each time.
_TOLERANCE: Final = 0.1
_LEAST_GROWTH: Final = 2.0
# Of the time in operators: the calls that answer may be few.
_LEAST_ANSWER_SHARE: Final = 0.01
_LEAST_PROMPT: Final = 50
# Two calls for one token each cost the same.
_MOST_RATIO: Final = 2.0
_TAKES_PARTS: Final = frozenset({
    "aten::slice",
    "aten::select",
    "aten::unsqueeze",
    "aten::narrow",
    "aten::empty",
})


def _find(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, HOST_TIME_NS.name)
    if not whole or CALL_DURATION_NS.name not in profile.metrics:
        return []
    functions = functions_of(profile)
    found = []
    for model in models(profile, functions.of_node, LEAST_SHARE * whole):
        if _computes_prefix_again(profile, functions, model):
            found.append(_prefix_finding(profile, model, whole))
        elif takes_single_samples(profile, functions, model):
            found.append(_sample_finding(profile, functions, model, whole))
        elif _reads_prompt_by_token(profile, functions, model, whole):
            found.append(_prompt_finding(profile, model, whole))
    built = built_weights(profile)
    of_built = source_locations.of_same_functions(profile, built)
    repeated = [each for each in repeated_inputs(profile) if not of_built[each.nodes[0]]]
    return [*found, *growing_work(profile), *built, *repeated]


def _computes_prefix_again(profile: Profile, functions: Functions, model: Model) -> bool:
    """Return whether the model's input grows by what the function picks from its output."""
    if model.has_backward or model.calls < _LEAST_TOKENS:
        return False
    appended = functions.count(JOINS, model.function)
    picked = functions.count(PICKS, model.function)
    if 2 * min(appended, picked) < model.calls:
        return False
    grows = _grows_evenly(profile, model)
    value = profile.inclusive(HOST_TIME_NS.name)
    linear = source_locations.operators(profile, {"aten::linear"}).nodes()
    end = int(profile.tree.subtree_end[model.node])
    linear = linear[(linear >= model.node) & (linear < end)]
    return int(value[linear[grows[linear]]].sum()) * 2 >= int(value[linear].sum()) > 0


def _grows_evenly(profile: Profile, model: Model) -> Mask:
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


def _reads_prompt_by_token(
    profile: Profile, functions: Functions, model: Model, whole: int
) -> bool:
    """Return whether a loop gives the model one part after the other, and ignores all results but the last.

    Another function calls the same model with what it picked from the results, and a call costs as much
    there: so each part is one token.
    """
    if model.has_backward or model.calls < _LEAST_PROMPT:
        return False
    own = functions.called & (functions.of_node == model.function)
    repeated = np.flatnonzero(own & (2 * functions.calls >= model.calls))
    names = {source_locations.base_name(profile.frame(node).name) for node in repeated.tolist()}
    if not names or not names <= _TAKES_PARTS:
        return False
    for other in models(profile, functions.of_node, _LEAST_ANSWER_SHARE * whole):
        if other.function == model.function or profile.frame(other.node) != profile.frame(
            model.node
        ):
            continue
        ratio = (model.value / model.calls) / max(other.value / max(other.calls, 1), 1)
        picks = functions.count(PICKS, other.function)
        if 2 * picks >= other.calls > 0 and 1 / _MOST_RATIO <= ratio <= _MOST_RATIO:
            return True
    return False


def _place(profile: Profile, model: Model) -> tuple[str, str]:
    """Return the model's name, and the line that calls it."""
    owner = source_locations.climb(profile, np.array([model.node]), profile.is_user_code())
    where = source_locations.location_text(profile, profile.frame(int(owner[0])))
    return profile.frame(model.node).name, where


def _sample_finding(profile: Profile, functions: Functions, model: Model, whole: int) -> Finding:
    # What the function does with each result is done for each batch then, too.
    inside = profile.tree.outermost(functions.of_node == model.function)
    around = int(profile.inclusive(HOST_TIME_NS.name)[inside].sum())
    name, where = _place(profile, model)
    share = model.value / whole
    return Finding(
        id="model_calls",
        severity=Severity.of_share(share),
        title=(
            f"{name} runs on one sample at a time at {where}, {model.calls:,} times: {share:.0%} of the "
            "time in operators"
        ),
        nodes=(model.node,),
        evidence={"model_ns": model.value, "model_share": share, "calls_count": model.calls},
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, around, "a batch costs no more than one sample"
        ),
        advice=(
            "give the model batches: several samples in one tensor (data.split(256), torch.stack, a "
            "DataLoader), padded to one length where their lengths differ"
        ),
        misleads="samples arrive one by one, and each must be answered at once",
    )


def _prefix_finding(profile: Profile, model: Model, whole: int) -> Finding:
    name, where = _place(profile, model)
    share = model.value / whole
    return Finding(
        id="model_calls",
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


def _prompt_finding(profile: Profile, model: Model, whole: int) -> Finding:
    name, where = _place(profile, model)
    share = model.value / whole
    return Finding(
        id="model_calls",
        severity=Severity.of_share(share),
        title=(
            f"{name} reads its prompt token by token at {where}, {model.calls:,} calls: {share:.0%} of the "
            "time in operators"
        ),
        nodes=(model.node,),
        evidence={"model_ns": model.value, "model_share": share, "calls_count": model.calls},
        gain=source_locations.bound(
            profile, HOST_TIME_NS.name, model.value, "one call for the whole prompt costs nothing"
        ),
        advice=(
            "give the model the whole prompt in one call (prefill), with a causal mask, and keep the keys "
            "and values of all its tokens; only the answer needs a call for each token"
        ),
        misleads="each token depends on the result for the one before, as in a recurrent model",
    )


ANALYZER = Analyzer(
    "model_calls", "does a model run sample by sample, or on the same tokens again?", _find
)
