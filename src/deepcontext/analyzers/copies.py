"""Copies: time spent on moving and converting tensors instead of computing with them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import input_types, source_locations
from deepcontext.analyzers.shared.converting_layers import ConvertingLayer, converting_layers
from deepcontext.analyzers.shared.jax_host_arrays import repeated_host_arrays
from deepcontext.analyzers.shared.kept_each_step import kept
from deepcontext.analyzers.shared.one_hots import one_hots
from deepcontext.analyzers.shared.operator_names import COPIES, DEVICE_OR_TYPE, JOINS
from deepcontext.analyzers.shared.rebuilt_tables import rebuilt_tables
from deepcontext.analyzers.shared.reordered_caches import reordered_caches
from deepcontext.analyzers.shared.weight_casts import weight_casts
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.query import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile

_LEAST_SHARE: Final = 0.08
# Joining skip connections or tokens is part of many models, but does not take more than this.
_LEAST_JOINED: Final = 0.25
_TIMES: Final = {HOST_TIME_NS.name: "time", source_locations.GPU_TIME: "GPU's time"}
# The advice itself leads to one conversion before the first step.
_LEAST_CALLS: Final = 5
# Source: names of cuDNN's and MIOpen's transposing kernels, as profilers show them.
# cuDNN's kernels for normalisation in NCHW are slower than those for NHWC: on an H100 `channels_last` saved
# 16 % of a training step of ResNet-50, of which conversions were 11 % and these 33 %.
_NORMS_IN_NCHW: Final = ("cudnn::bn_fw", "cudnn::bn_bw")
_LAYOUT_KERNELS: Final = ("nchwtonhwc", "nhwctonchw", "nchw2nhwc", "nhwc2nchw", "batched_transpose")


def _find(profile: Profile) -> list[Finding]:
    if source_locations.judged_total(profile, source_locations.GPU_TIME):
        found = [*_layout_kernels(profile), *_device_copies(profile)]
        return [*found, *_on_device(profile, found)]
    if source_locations.judged_total(profile, HOST_TIME_NS.name):
        rows = one_hots(profile)
        return [
            *rows,
            *_operators(profile, rows),
            *_joins(profile),
            *weight_casts(profile),
            *reordered_caches(profile),
            *repeated_host_arrays(profile),
        ]
    return []


def _operators(profile: Profile, told: Sequence[Finding]) -> list[Finding]:
    """Report lines and layers that copy, except in the functions of findings that were told."""
    metric = HOST_TIME_NS.name
    copies = _by_hand(profile, told)
    least = _LEAST_SHARE * total(profile, metric)
    layers = [
        each
        for each in converting_layers(profile, copies, _called(profile.query()), least)
        if each.conversions.count >= _LEAST_CALLS
    ]
    said = {node for each in layers for node in each.conversions.nodes}
    lines = source_locations.by_line(copies, metric, least)
    return [
        *(_layer_finding(profile, each) for each in layers),
        *(
            _operator_finding(profile, location, metric)
            for location in lines
            if location.count >= _LEAST_CALLS and said.isdisjoint(location.nodes)
        ),
    ]


def _on_device(profile: Profile, told: Sequence[Finding]) -> list[Finding]:
    """Report lines whose copies and conversions take much of the GPU's time."""
    metric = source_locations.GPU_TIME
    moved = source_locations.nodes_named(profile, FrameKind.PYTHON, {"Module._apply"})
    copies = source_locations.without(_by_hand(profile, told), moved)
    lines = source_locations.by_line(copies, metric, _LEAST_SHARE * total(profile, metric))
    return [
        _operator_finding(profile, location, metric)
        for location in lines
        if location.count >= _LEAST_CALLS and location.frame is not None
    ]


def _by_hand(profile: Profile, told: Sequence[Finding]) -> Query:
    """Return the copies that Python code asks for, except in the functions of findings that were told."""
    copies = _called(source_locations.operators(profile, COPIES))
    # Products copy their bias and operands; that is part of the product.
    parents = profile.tree.parent.clip(0)
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    by_hand = ~is_operator[parents] | source_locations.operators(profile, _WRAPPERS).mask()[parents]
    by_hand &= ~source_locations.of_same_functions(profile, told)
    # A program that loads a model again and again has that as its fault (`host_work`).
    loading = source_locations.nodes_named(profile, FrameKind.PYTHON, {"Module.load_state_dict"})
    by_hand &= ~profile.tree.below(loading.mask())
    # Data that is held as bytes has to be converted batch by batch.
    by_hand &= ~_of_data(profile)
    # A copy that each step keeps is `memory`'s to tell.
    by_hand &= ~profile.tree.at_or_above(kept(profile, ""))
    return Query(profile, copies.mask() & by_hand)


def _called(operators: Query) -> Query:
    """Leave out the backward, the optimizer and the loader, which other analyzers judge."""
    return source_locations.apart(operators.phase("none", "forward", "other"))


def _joins(profile: Profile) -> list[Finding]:
    """Report functions that spend much of the time on joining tensors, for example in a loop."""
    metric = HOST_TIME_NS.name
    whole = total(profile, metric)
    found = []
    tables = rebuilt_tables(profile, profile.is_user_code())
    said = source_locations.of_same_functions(profile, tables)
    # A result that each step keeps does not grow itself, and takes its time for fresh memory (`memory`).
    said |= kept(profile, "")
    for location in source_locations.by_function(
        _called(source_locations.operators(profile, JOINS)), metric, _LEAST_JOINED * whole
    ):
        if said[location.nodes[0]]:
            continue
        if location.count < _LEAST_CALLS or location.frame is None:
            continue
        share = location.value / whole
        found.append(
            Finding(
                id="copies",
                severity=Severity.of_share(share),
                title=(
                    f"joining tensors at {source_locations.location_text(profile, location.frame)} takes "
                    f"{share:.0%} of the time"
                ),
                nodes=location.nodes[:8],
                evidence={
                    "copy_ns": location.value,
                    "copy_share": share,
                    "calls_count": location.count,
                },
                gain=source_locations.bound_of_copies(profile, HOST_TIME_NS.name, location.value),
                advice=(
                    "a tensor that grows by cat in a loop is copied completely every time: write into "
                    "a preallocated tensor (cache[:, step] = value), or keep the parts in a list and "
                    "join them once after the loop"
                ),
                misleads="a model joins parts of a fixed size once in each layer (skip connections)",
            )
        )
    return found


# Operators that Python code calls and that do nothing but dispatch to a copy.
_WRAPPERS: Final = frozenset({"aten::reshape", "aten::flatten", "aten::float", "aten::type_as"})


def _operator_finding(
    profile: Profile, location: source_locations.Location, metric: str
) -> Finding:
    names = {source_locations.base_name(profile.frame(node).name) for node in location.nodes}
    what, advice = _what(profile, location, metric)
    share = location.value / total(profile, metric)
    return Finding(
        id="copies",
        severity=Severity.of_share(share),
        title=(
            f"{', '.join(sorted(names))} at {source_locations.location_text(profile, location.frame)} "
            f"{what}, {share:.0%} of the {_TIMES[metric]}"
        ),
        nodes=location.nodes[:8],
        evidence={"copy_ns": location.value, "copy_share": share, "calls_count": location.count},
        gain=source_locations.bound_of_copies(profile, metric, location.value),
        advice=advice,
        misleads=(
            "the next operator is so much faster on the copy that the copy pays off; most of the "
            "bound is cache effects, which do not apply to tensors larger than the caches; types are "
            "not recorded, so changes of type and of device look alike"
        ),
    )


def _of_data(profile: Profile) -> source_locations.Mask:
    """Return which conversions make numbers of integers outside of layers, shape (nodes,).

    A layer may hold its weights as bytes, and convert the same weights in each call.
    """
    in_layers = profile.tree.below(profile.query().kind(FrameKind.MODULE).mask())
    return np.asarray(input_types.of_narrow_integers(profile) & ~in_layers)


def _what(profile: Profile, location: source_locations.Location, metric: str) -> tuple[str, str]:
    """Return what most of the time of a line's copies does, and what to do."""
    nodes = np.array(location.nodes)
    spent = profile.inclusive(metric)
    # The backward of a write into a part of a tensor.
    slices = source_locations.operators(profile, {_WRITTEN_PART}).phase("backward").nodes()
    is_write = np.isin(nodes, profile.tree.parent[slices])
    converts = source_locations.operators(profile, DEVICE_OR_TYPE).mask()[nodes]
    if 2 * spent[nodes[is_write]].sum() > spent[nodes].sum():
        return "writes parts into a tensor of the graph", _WRITES_ADVICE
    if 2 * spent[nodes[converts]].sum() >= spent[nodes].sum():
        return "converts or moves tensors", _CONVERSION_ADVICE
    return "copies tensors", _LAYOUT_ADVICE


def _layer_finding(profile: Profile, layer: ConvertingLayer) -> Finding:
    """Report a function that converts its inputs, computes, and converts back."""
    location = layer.conversions
    share = location.value / total(profile, HOST_TIME_NS.name)
    by_copies = source_locations.bound_of_copies(profile, HOST_TIME_NS.name, location.value)
    by_operator = source_locations.bound(
        profile,
        HOST_TIME_NS.name,
        layer.whole.value,
        "one operator that replaces this function's conversions and pointwise operators costs "
        "nothing; in fact it still reads and writes once",
    )
    return Finding(
        id="copies",
        severity=Severity.of_share(share),
        title=(
            f"{layer.function} converts tensors there and back, most at "
            f"{source_locations.location_text(profile, location.frame)}, {share:.0%} of the time"
        ),
        nodes=location.nodes[:8],
        evidence={
            "copy_ns": location.value,
            "copy_share": share,
            "layer_ns": layer.whole.value,
            "calls_count": location.count,
        },
        gain=max(by_operator, by_copies, key=lambda gain: gain.upper_bound),
        advice=(
            "make the layer one operator: torch's operators (rms_norm, layer_norm) and compiled "
            "functions (torch.compile) convert while they compute"
        ),
        misleads=(
            "the function is not a layer, and its conversions are unrelated; torch's operator rounds "
            "at other points than the function"
        ),
    )


_CONVERSION_ADVICE: Final = (
    "convert once, outside the step, or create the tensor with the needed type on the needed device"
)
_WRITTEN_PART: Final = "torch::autograd::CopySlices"
_WRITES_ADVICE: Final = (
    "keep the parts in a list and join them once after the loop (torch.stack, torch.cat): the backward "
    "of each write into a part copies the gradient of the whole tensor"
)
_LAYOUT_ADVICE: Final = (
    "leave out the copy: views (transpose, expand, slicing) need no contiguous() before "
    "operators that take strides; keep activations in one memory format "
    "(channels_last for convolutions) from the first layer to the last"
)


def _layout_kernels(profile: Profile) -> list[Finding]:
    kernels = source_locations.nodes_named(
        profile,
        FrameKind.KERNEL,
        lambda name: any(each in name.lower() for each in _LAYOUT_KERNELS),
    )
    value = kernels.total(source_locations.GPU_TIME)
    share = value / total(profile, source_locations.GPU_TIME)
    if share < _LEAST_SHARE:
        return []
    nodes = [
        node
        for location in source_locations.by_line(kernels, source_locations.GPU_TIME)
        for node in location.nodes
    ]
    location = source_locations.by_line(kernels, source_locations.GPU_TIME)[0]
    norms = source_locations.nodes_named(
        profile, FrameKind.KERNEL, lambda name: any(each in name for each in _NORMS_IN_NCHW)
    ).total(source_locations.GPU_TIME)
    finding = _gpu_finding(
        profile,
        nodes,
        value,
        f"{share:.0%} of the GPU's time converts between NCHW and NHWC, most of it at "
        f"{source_locations.location_text(profile, location.frame)}",
        (
            "put model and input into one layout: model.to(memory_format=torch.channels_last) "
            "and the same for the input, so that convolutions stop transposing"
        ),
    )
    gain = source_locations.bound(
        profile,
        source_locations.GPU_TIME,
        value + norms,
        "nothing is converted, and the normalisation, which is faster in NHWC, costs nothing",
    )
    return [dataclasses.replace(finding, gain=gain) if norms else finding]


def _device_copies(profile: Profile) -> list[Finding]:
    copies = Query(profile).kind(FrameKind.COPY)
    # The device takes no part in a copy from host to host. A model is moved to the device once.
    on_host = source_locations.nodes_named(profile, FrameKind.COPY, lambda name: "HtoH" in name)
    moved = source_locations.nodes_named(profile, FrameKind.PYTHON, {"Module._apply"})
    copies = Query(profile, source_locations.without(copies, moved).mask() & ~on_host.mask())
    found = []
    for location in source_locations.by_line(copies, source_locations.GPU_TIME):
        share = location.value / total(profile, source_locations.GPU_TIME)
        if share < _LEAST_SHARE:
            break
        if location.frame is None:
            continue  # a library's own threads: XLA tries kernels while it compiles
        names = {profile.frame(node).name for node in location.nodes}
        is_host = any("HtoD" in name or "DtoH" in name for name in names)
        advice = (
            "copy from pinned memory (pin_memory=True in the loader, tensor.pin_memory()) with "
            "non_blocking=True, so that the copy overlaps with kernels; copy less, or less often"
            if is_host
            else "work in place, or keep one buffer; avoid cat and clone of large tensors"
        )
        title = (
            f"{', '.join(sorted(names))} from {source_locations.location_text(profile, location.frame)}: "
            f"{share:.0%} of the GPU's time"
        )
        found.append(_gpu_finding(profile, location.nodes, location.value, title, advice))
    return found


def _gpu_finding(
    profile: Profile, nodes: Sequence[int], value: int, title: str, advice: str
) -> Finding:
    share = value / total(profile, source_locations.GPU_TIME)
    return Finding(
        id="copies",
        severity=Severity.of_share(share),
        title=title,
        nodes=tuple(nodes)[:8],
        evidence={"copy_ns": value, "copy_share": share},
        gain=source_locations.bound_of_copies(profile, source_locations.GPU_TIME, value),
        advice=advice,
        misleads="the copy overlaps with kernels of another stream and delays nothing",
    )


ANALYZER = Analyzer("copies", "is time spent on copying and converting tensors?", _find)
