"""Does a model run one sample at a time, on the same tokens or inputs again, or on values that nobody needs?

Judges modules that the program calls outside of other modules (`shared/model_runs.py`), and parts of a
program whose inputs repeat while those of others vary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import HOST, Cause, at_place
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.called_operators import called_modules
from deepcontext.analyzers.shared.model_runs import (
    LEAST_SHARE,
    Model,
    models,
    takes_single_samples,
)
from deepcontext.analyzers.shared.places import (
    ALLOCATED,
    Places,
    allocations,
    is_even,
    query_of,
)
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    COMPARISON_WINDOW,
    IGNORED_TARGETS,
    INDICES,
    LOSS_TARGETS,
    PADDING,
    REPEATED_INPUTS,
    SHARED_PADDING,
)
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.basis import Part, basis_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

_FEWEST_TOKENS: Final = 20
_LEAST_GROWTH: Final = 2.0
# Comparisons of inputs with those of earlier calls: of one operator, of all in a part; shares that repeat
# (the first calls with a new input differ), in a part and in what varies; time of what varies meanwhile.
_FEWEST_COMPARED: Final = 3
_FEWEST_IN_PART: Final = 8
_LEAST_SAME: Final = 0.4
_MOST_SAME_OF_VARYING: Final = 0.25
_LEAST_OF_PART: Final = 0.9
_LEAST_VARYING: Final = 0.1
_FEWEST_LOOKS: Final = 3
# Of the positions of batches. Random samples of different lengths are padded by a third or so.
_LEAST_PADDING: Final = 0.5
_LEAST_SHARED: Final = 0.2
_FEWEST_BATCHES: Final = 2
_INDEX_BYTES: Final = (4, 8)
_LEAST_IGNORED: Final = 0.5


def find(profile: Profile) -> Iterator[Cause]:
    """Return what models compute in vain."""
    whole = at.judged_total(profile, HOST)
    if not whole or CALL_DURATION_NS.name not in profile.metrics:
        return
    places = Places.of(profile)
    for model in models(places, LEAST_SHARE * whole):
        if _computes_prefix_again(places, model):
            yield _of_model(profile, "prefix_computed_again", model)
        elif takes_single_samples(places, model):
            # What the function does with each result is done for each batch then, too.
            inside = profile.tree.outermost(places.function == model.function)
            around = int(profile.inclusive(HOST)[inside].sum())
            yield _of_model(profile, "one_sample_at_a_time", model, around)
    yield from _made_again(profile)
    yield from _padding(profile)
    yield from _repeated_inputs(profile)
    if ALLOCATED in profile.metrics:
        yield from _ignored_targets(profile, whole)


def _of_model(profile: Profile, key: str, model: Model, saved: int | None = None) -> Cause:
    return Cause(
        key=key,
        nodes=(model.node,),
        frame=at.frame_of(profile, model.node),
        metric=HOST,
        value=model.value,
        saved=saved,
        words={"name": profile.frame(model.node).name, "calls": model.calls},
        evidence={"calls_count": model.calls},
    )


def _computes_prefix_again(places: Places, model: Model) -> bool:
    """Return whether the model's input grows by what the function picks from its output."""
    if model.has_backward or model.calls < _FEWEST_TOKENS:
        return False
    appended = places.count("joins", model.function)
    picked = places.count("picks", model.function)
    if 2 * min(appended, picked) < model.calls:
        return False
    profile = places.profile
    grows = _grows_evenly(profile, model)
    linear = at.operators(profile, catalogue.operators("linear")).nodes()
    linear = linear[(linear >= model.node) & (linear < profile.tree.subtree_end[model.node])]
    value = profile.inclusive(HOST)[linear]
    return int(value[grows[linear]].sum()) * 2 >= int(value.sum()) > 0


def _grows_evenly(profile: Profile, model: Model) -> at.Mask:
    """Return which linear layers allocate sizes that are spread evenly between two limits, shape (nodes,)."""
    tree, rows = profile.tree, allocations(profile)
    found = np.zeros(len(tree), np.bool_)
    if rows is None or rows.minimum is None or rows.maximum is None or rows.m2 is None:
        return found
    linear = tree.nearest(at.operators(profile, catalogue.operators("linear")).mask())
    low, high = rows.minimum.astype(np.float64), rows.maximum.astype(np.float64)
    count = np.maximum(rows.count, 1)
    grows = is_even(low, high, rows.total / count, np.sqrt(rows.m2 / count))
    grows &= (high >= _LEAST_GROWTH * low) & (rows.count >= _FEWEST_TOKENS)
    grows &= (rows.node >= model.node) & (rows.node < tree.subtree_end[model.node])
    which = linear[rows.node[grows]]
    found[which[which != NO_NODE]] = True
    return found


def _made_again(profile: Profile) -> Iterator[Cause]:
    """Find modules that steps make anew: their weights are drawn, and mostly overwritten from a file."""
    basis = basis_of(profile)
    made = at.outermost(at.nodes_named(profile, FrameKind.PYTHON, _draws_weights))
    if not made.count() or basis.part is not Part.STEADY or profile is not basis.profile:
        return
    drawn = at.operators(profile, catalogue.operators("draws_weights")).under(made)
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    for place in at.by_function(made, HOST, at.little(profile, HOST)):
        inside = profile.tree.at_or_below(query_of(profile, place.nodes).mask())
        times = int(calls[drawn.mask() & inside].max(initial=0))
        if 2 * times >= basis.all_steps:
            yield at_place("weights_made_again", place, words={"times": times})


def _draws_weights(name: str) -> bool:
    return name.endswith("reset_parameters")


def _repeated_inputs(profile: Profile) -> Iterator[Cause]:
    """Find parts that compute the same in each call, while other parts compute something new.

    Inputs are compared by some elements, weights too, in short windows. What varies ran at the same time, so
    that a benchmark that repeats one call is no cause.
    """
    rows = profile.metrics.get(COMPARISON_WINDOW.name)
    if rows is None or rows.minimum is None or rows.maximum is None:
        return
    tree = profile.tree
    count, first, last = np.zeros((3, len(tree)), np.int64)
    count[rows.node], first[rows.node], last[rows.node] = rows.count, rows.minimum, rows.maximum
    is_forward = ~np.isin(tree.phase, (Phase.BACKWARD, Phase.OPTIMIZER))
    outermost = at.outermost(Query(profile, (count > 0) & is_forward)).mask()
    again = exclusive_or_zeros(profile, REPEATED_INPUTS.name)
    is_known = outermost & (count >= _FEWEST_COMPARED)
    same, varying = (
        is_known & (again >= _LEAST_SAME * count),
        is_known & (again <= _MOST_SAME_OF_VARYING * count),
    )
    value = np.where(outermost, profile.inclusive(HOST), 0)
    of_same, of_all = tree.inclusive(np.where(same, value, 0)), tree.inclusive(value)
    parts = (of_same > 0) & (of_same >= _LEAST_OF_PART * of_all)
    parts &= tree.inclusive(np.where(varying, value, 0)) == 0
    parts &= tree.inclusive(np.where(same, count, 0)) >= _FEWEST_IN_PART
    parts &= ~profile.is_kind(FrameKind.ROOT, FrameKind.THREAD)
    chosen = np.zeros(len(tree), np.bool_)
    for node in tree.outermost(parts).tolist():
        inside = slice(node, int(tree.subtree_end[node]))
        low, high = int(first[inside][same[inside]].min()), int(last[inside][same[inside]].max())
        meanwhile = varying & (2 * first <= low + high) & (2 * last >= low + high)
        beside = int(value[meanwhile].sum())
        chosen[node] = low < high and beside >= _LEAST_VARYING * int(of_same[node])
    for location in at.by_line(Query(profile, chosen), HOST, at.little(profile, HOST)):
        within = tree.at_or_below(query_of(profile, location.nodes).mask())
        modules = at.outermost(Query(profile, within & profile.is_kind(FrameKind.MODULE))).nodes()
        names = {at.without_inner(profile.frame(node).name) for node in modules.tolist()}
        counted: dict[str, int | float | str] = {
            "compared_count": int(count[within].sum()),
            "repeated_count": int(again[within].sum()),
        }
        text = f" ({', '.join(sorted(names)[:3])})" if names else ""
        words = {"names": text, **counted}
        yield at_place("same_inputs_again", location, words=words, evidence=counted)


def _padding(profile: Profile) -> Iterator[Cause]:
    """Find models that compute on sequences of which a large part is padding.

    Few calls are looked at, so that those of all lines that call a model count together.
    """
    if INDICES.name not in profile.metrics:
        return
    tree, modules = profile.tree, called_modules(profile)
    looks, spent = counts_or_zeros(profile, INDICES.name), profile.inclusive(HOST)
    skips = tree.at_or_above(at.operators(profile, catalogue.operators("skips_padding")).mask())
    for frame in np.unique(tree.frame[modules]).tolist():
        nodes = modules[tree.frame[modules] == frame]
        inside = tree.at_or_below(query_of(profile, nodes).mask())
        seen, padded, shared = (
            int(exclusive_or_zeros(profile, each.name)[inside].sum())
            for each in (INDICES, PADDING, SHARED_PADDING)
        )
        if int(looks[inside].sum()) < _FEWEST_BATCHES or skips[nodes].any():
            continue
        is_beyond = shared >= _LEAST_SHARED * seen
        if is_beyond or padded >= _LEAST_PADDING * seen:
            makers = _makers(profile, inside) if is_beyond else []
            yield Cause(
                key="padding_beyond_longest" if is_beyond else "padding_to_longest",
                nodes=nodes.tolist(),
                shown=(*makers, *nodes.tolist()),
                frame=at.frame_of(profile, int(nodes[0])),
                metric=HOST,
                value=round(int(spent[nodes].sum()) * padded / seen),
                words={
                    "name": profile.frame(int(nodes[0])).name,
                    "padded": padded / seen,
                    "shared": shared / seen,
                    "made": f", made at {at.place_text(profile, makers[0])}" if makers else "",
                },
                evidence={"padding_share": padded / seen, "shared_padding_share": shared / seen},
            )


def _makers(profile: Profile, inside: at.Mask) -> list[int]:
    """Return the operator that most often makes what is as large as the largest batch of indices."""
    made, looked = allocations(profile), basis_of(profile).whole.metrics.get(INDICES.name)
    if made is None or made.maximum is None or looked is None or looked.maximum is None:
        return []
    positions = int(looked.maximum[inside[looked.node]].max(initial=0))
    fits = np.isin(made.maximum, [positions * size for size in _INDEX_BYTES])
    fits &= (2 * made.total >= made.count * made.maximum) & ~inside[made.node]
    makes = at.operators(profile, catalogue.operators("makes_batches")).mask()
    fits &= profile.tree.at_or_below(makes)[made.node]
    return [int(made.node[np.argmax(np.where(fits, made.count, 0))])] if fits.any() else []


def _ignored_targets(profile: Profile, whole: int) -> Iterator[Cause]:
    """Find last layers and losses that compute on positions whose targets the loss ignores."""
    looks = counts_or_zeros(profile, LOSS_TARGETS.name)
    if not looks.any():
        return
    tree, places = profile.tree, Places.of(profile)
    operators = Query(profile, profile.is_kind(FrameKind.OPERATOR))
    of_node = tree.nearest(at.outermost(operators).mask())
    made = places.largest(backward=False)
    for loss in np.unique(of_node[(looks > 0) & (of_node != NO_NODE)]).tolist():
        inside = (of_node == loss) & (looks > 0)
        seen, ignored = (
            int(exclusive_or_zeros(profile, each.name)[inside].sum())
            for each in (LOSS_TARGETS, IGNORED_TARGETS)
        )
        if int(looks[inside].sum()) < _FEWEST_LOOKS or ignored < _LEAST_IGNORED * seen:
            continue
        # The layer whose result is as large as the log probabilities of the loss, and called as often.
        linear = at.operators(profile, catalogue.operators("linear")).nodes()
        alike = (places.calls[linear] == places.calls[loss]) & (made[linear] == max(made[loss], 1))
        layers = linear[alike].tolist()
        spent = int(places.time[[loss, *layers]].sum())
        value = round(spent * ignored / seen)
        what = f"the result of {at.place_text(profile, layers[0])}" if layers else "its input"
        yield Cause(
            key="ignored_targets",
            nodes=(*layers[:7], loss),
            frame=at.frame_of(profile, loss),
            metric=HOST,
            value=value,
            words={"ignored": ignored / seen, "what": what, "spent": spent / whole},
            evidence={"ignored_share": ignored / seen},
        )
