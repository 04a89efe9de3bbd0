"""Is a wider or slower form of values used than needed: in type, layout, or by a copy?

On a GPU, the names of kernels reveal types and layouts. On a processor, the inputs of operators do, which are
recorded in short windows, and always with shapes. Compiled programs say the type of each result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers import catalogue
from deepcontext.analyzers.causes import HOST, Cause, at_place
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import input_types
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.kept_each_step import kept
from deepcontext.analyzers.shared.places import query_of
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, FLOPS
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros, total
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.torch_settings import torch_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.model.profile import Profile

_SAVED_BY_FLOAT32: Final = 2 / 3
# Compiled programs. With a smaller share of the elapsed time, the program does not wait for the device.
_LEAST_BUSY: Final = 0.05
_LEAST_MOVED: Final = 0.10
# Arrays that are prepared once are not worth a change.
_FEWEST_LAUNCHES: Final = 5
# Runs of an operation for each launch of its program, from which on the operation is in a loop, which passes
# its state on. Of a program's time, in copies: what the program computes could be a part of another program.
_RUNS_IN_LOOP: Final = 1.5
_MOSTLY_MOVES: Final = 0.5
# XLA names a fusion after its operations: "transpose_copy_fusion".
_MOVES: Final = ("copy", "transpose")
# Conversions for each call of a layer.
_THERE_AND_BACK: Final = 2
_HALVES: Final = (("bfloat16", "bf16"), ("float16", "f16"))
# Source: names of cuDNN's and MIOpen's transposing kernels, as profilers show them; and of the
# normalisations in NCHW, slower than those in NHWC: on an H100 `channels_last` saved 16 % of a training
# step of ResNet-50, of which conversions were 11 % and these 33 %.
_NORMS_IN_NCHW: Final = ("cudnn::bn_fw", "cudnn::bn_bw")
# Source: cuBLAS and CUTLASS name kernels by type: sgemm and simt are float32 without tensor cores, dgemm is
# float64. rocBLAS (Tensile) writes the types after the layout: _SB_ is float32, _DB_ double. On an H100,
# CUDA 13.0 ran float32 as sm80_xmma_gemm_f32f32_f32f32_f32_..._ffma_..., and with TF32 as
# sm90_xmma_gemm_f32f32_tf32f32_f32_...
_KERNELS: Final = {
    "products_in_single": ("sgemm", "simt_s", "_sb_", "s884gemm_fp32", "gemm_f32f32_f32f32_f32"),
    "products_in_double": ("dgemm", "simt_d", "_db_", "d884", "gemm_f64f64_f64f64_f64"),
    "kernels_convert_layouts": (
        "nchwtonhwc",
        "nhwctonchw",
        "nchw2nhwc",
        "nhwc2nchw",
        "batched_transpose",
    ),
}
_TENSOR_CORE: Final = ("tf32", "s1688", "bf16", "f16", "fp16", "h884", "h1688", "16816", "s161616")


def find(profile: Profile) -> Iterator[Cause]:
    """Return conversions, copies and types that cost time."""
    if at.judged_total(profile, at.GPU_TIME):
        yield from _kernels_by_type(profile)
        yield from _device_copies(profile)
        yield from _copies(profile, at.GPU_TIME)
        return
    yield from _types(profile)
    yield from _programs_in_double(profile)
    if at.judged_total(profile, at.DEVICE_TIME) >= max(_LEAST_BUSY * profile.run.wall_ns, 1):
        yield from _moved(profile)
    if at.judged_total(profile, HOST) and not total(profile, at.DEVICE_TIME):
        yield from _converting_layers(profile)
        yield from _copies(profile, HOST)


def _types(profile: Profile) -> Iterator[Cause]:
    """Find operators of a processor that compute in float64, or in 16 bits without instructions for it."""
    nodes, value = input_types.costly(profile, "f64")
    if nodes:
        entries = {
            "it is made of other data": input_types.most_made(profile),
            "it meets a narrower type": input_types.most_widened(profile),
        }
        where = "".join(
            f"; {text} at " + " and ".join(at.location_text(profile, each.frame) for each in lines)
            for text, lines in entries.items()
            if lines
        )
        also = [each.nodes[0] for lines in entries.values() for each in lines]
        yield _typed(profile, "numbers_in_double", nodes, value, {"entries": where}, also)
    fast = torch_settings(profile).fast_types
    for name, short in _HALVES:
        nodes, value = input_types.costly(profile, short)
        if nodes and fast is not None and short not in fast:
            yield _typed(profile, "numbers_in_half", nodes, value, {"name": name})


def _typed(
    profile: Profile,
    key: str,
    nodes: Sequence[int],
    value: int,
    words: dict[str, object],
    also: Sequence[int] = (),
) -> Cause:
    line = at.by_line(query_of(profile, nodes), HOST)[0]
    shown = (*(*line.nodes[:4], *nodes[:4])[:6], *also)
    saved = int(_SAVED_BY_FLOAT32 * value)
    return at_place(key, line, nodes=nodes, shown=shown, value=value, saved=saved, words=words)


def _programs_in_double(profile: Profile) -> Iterator[Cause]:
    whole = at.judged_total(profile, at.DEVICE_TIME)
    if not whole or not at.has_jax(profile):
        return
    doubles = [each for each in jax_operations.operations(profile) if each.type == "f64"]
    value = min(sum(each.device_ns for each in doubles), whole)
    names = {each.name for each in doubles}
    lines = at.by_line(at.nodes_named(profile, FrameKind.HLO, names), at.DEVICE_TIME)
    if lines:
        saved, key = int(_SAVED_BY_FLOAT32 * value), "numbers_in_double_of_programs"
        yield at_place(key, lines[0], at.DEVICE_TIME, value=value, saved=saved)


def _by_hand(profile: Profile) -> Query:
    """Return the copies that Python code asks for, which are nobody else's to tell."""
    return Query(profile, profile.once(_by_hand, lambda: _asked_copies(profile)))


def _asked_copies(profile: Profile) -> at.Mask:
    tree = profile.tree
    copies = at.operators(profile, catalogue.operators("copies")).phase("none", "forward", "other")
    # Products copy their bias and operands; that is part of the product.
    is_operator, above = profile.is_kind(FrameKind.OPERATOR), tree.parent.clip(0)
    wraps = at.operators(profile, catalogue.operators("wraps_copies")).mask()
    by_hand = copies.mask() & (~is_operator[above] | wraps[above])
    # A program that loads a model again and again has that as its fault; a model is moved to the device once.
    moving = {"Module.load_state_dict", "Module._apply"}
    by_hand &= ~tree.below(at.nodes_named(profile, FrameKind.PYTHON, moving).mask())
    # Data that is held as bytes has to be converted batch by batch; a layer may hold its weights as bytes.
    in_layers = tree.below(profile.is_kind(FrameKind.MODULE))
    by_hand &= ~(input_types.of_narrow_integers(profile) & ~in_layers)
    # A copy that each step keeps is memory that grows.
    by_hand &= ~tree.at_or_above(kept(profile, ""))
    return at.apart(Query(profile, by_hand)).mask()


def _converting_layers(profile: Profile) -> Iterator[Cause]:
    """Find functions that convert their inputs, compute, and convert back: two conversions a call or more."""
    tree, least = profile.tree, at.little(profile, HOST)
    # A conversion to the type that a tensor already has calls nothing.
    has_children = tree.subtree_end > np.arange(len(tree)) + 1
    conversions = at.operators(profile, catalogue.operators("conversions")).mask() & has_children
    conversions &= _by_hand(profile).mask()
    pointwise = at.operators(profile, catalogue.operators("pointwise"))
    pointwise = at.apart(pointwise.phase("none", "forward", "other"))
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)
    wholes = at.by_function(Query(profile, conversions | pointwise.mask()), HOST, least)
    of_function = {each.frame and (each.frame.file, each.frame.name): each for each in wholes}
    for location in at.by_function(Query(profile, conversions), HOST, least):
        frame = location.frame
        layer = of_function.get(frame and (frame.file, frame.name))
        if frame is None or frame.name == "<module>" or layer is None:
            continue
        nodes = np.array(layer.nodes)
        others, converting = nodes[~conversions[nodes]], nodes[conversions[nodes]]
        # A line of a class counts once, even if the model has many layers of the class.
        site = tree.frame[tree.parent[others]].astype(np.int64) * len(profile.frames)
        _, line = np.unique(site + tree.frame[others], return_inverse=True)
        usual = np.sort(np.bincount(line, calls[others]))
        often = len(usual) and calls[converting].sum() / max(usual[len(usual) // 2], 1)
        if often >= _THERE_AND_BACK:
            by_copies = at.bound_of_copies(profile, HOST, location.value).upper_bound
            yield at_place(
                "converted_there_and_back",
                location,
                saved=max(layer.value, by_copies),
                words={"name": frame.name},
                evidence={"layer_ns": layer.value},
            )


def _copies(profile: Profile, metric: str) -> Iterator[Cause]:
    """Find lines that copy, by what most of the time of their copies does."""
    spent, tree = profile.inclusive(metric), profile.tree
    # The backward of a write into a part of a tensor.
    slices = at.operators(profile, catalogue.operators("writes_part")).phase("backward").nodes()
    converts = at.operators(profile, catalogue.operators("conversions")).mask()
    for location in at.by_line(_by_hand(profile), metric, at.little(profile, metric)):
        is_asked = location.frame is not None and location.frame.kind is FrameKind.PYTHON
        if metric == at.GPU_TIME and not is_asked:
            continue
        nodes = np.array(location.nodes)
        whole = int(spent[nodes].sum())
        key = "copied_in_other_layout"
        if 2 * spent[nodes[np.isin(nodes, tree.parent[slices])]].sum() > whole:
            key = "parts_written_into_graph"
        elif 2 * spent[nodes[converts[nodes]]].sum() >= whole:
            key = "converted_or_moved"
        names = {at.base_name(profile.frame(node).name) for node in location.nodes}
        unit = "time" if metric == HOST else "GPU's time"
        words = {"operators": ", ".join(sorted(names)), "unit": unit}
        saved = at.bound_of_copies(profile, metric, location.value).upper_bound
        yield at_place(key, location, metric, saved=saved, words=words)


def _kernels_by_type(profile: Profile) -> Iterator[Cause]:
    """Find kernels of a GPU that compute in slow types, or convert layouts, by their names."""
    norms = _kernels(profile, _NORMS_IN_NCHW)
    for key, names in _KERNELS.items():
        if kernels := _kernels(profile, names, _TENSOR_CORE if "products" in key else ()):
            value = sum(each.value for each in kernels)
            nodes = [node for each in kernels for node in each.nodes]
            extra = 0 if "products" in key else sum(each.value for each in norms)
            kernel = {"kernel": profile.frame(nodes[0]).name}
            saved = value + extra
            first = kernels[0]
            yield at_place(
                key, first, at.GPU_TIME, nodes=nodes, value=value, saved=saved, evidence=kernel
            )


def _kernels(
    profile: Profile, names: Sequence[str], others: Sequence[str] = ()
) -> list[at.Location]:
    """Return the lines of kernels with one of some parts in their names, and none of others."""

    def accepts(name: str) -> bool:
        lower = name.lower()
        return any(each in lower for each in names) and not any(each in lower for each in others)

    return at.by_line(at.nodes_named(profile, FrameKind.KERNEL, accepts), at.GPU_TIME)


def _device_copies(profile: Profile) -> Iterator[Cause]:
    # The device takes no part in a copy from host to host. A model is moved to the device once.
    on_host = at.nodes_named(profile, FrameKind.COPY, lambda name: "HtoH" in name).mask()
    moved = at.nodes_named(profile, FrameKind.PYTHON, {"Module._apply"})
    copies = at.without(Query(profile, profile.is_kind(FrameKind.COPY) & ~on_host), moved)
    for location in at.by_line(copies, at.GPU_TIME, at.little(profile, at.GPU_TIME)):
        if location.frame is not None:  # not of a library's own threads: XLA tries kernels
            names = ", ".join(sorted({profile.frame(node).name for node in location.nodes}))
            key = "copies_from_host" if "HtoD" in names or "DtoH" in names else "copies_on_device"
            yield at_place(key, location, at.GPU_TIME, words={"names": names})


def _moved(profile: Profile) -> Iterator[Cause]:
    """Find operations that only move values, whether written by the user or inserted by XLA."""
    named = at.nodes_named(
        profile, FrameKind.HLO, lambda name: any(each in name for each in _MOVES)
    ).mask()
    if FLOPS.name in profile.metrics:
        named = named & (profile.exclusive(FLOPS.name) == 0)
    moves = Query(profile, named)
    value = moves.total(at.DEVICE_TIME)
    if value < at.little(profile, at.DEVICE_TIME):
        return
    markers = at.nodes_named(profile, FrameKind.MARKER, {jax_programs.INSERTED})
    lines = at.by_line(moves, at.DEVICE_TIME)
    yield Cause(
        key="arrays_moved_in_programs",
        nodes=[node for location in lines for node in location.nodes],
        frame=lines[0].frame,
        metric=at.DEVICE_TIME,
        value=value,
        saved=at.bound_of_copies(profile, at.DEVICE_TIME, value).upper_bound,
        severity=None if _is_avoidable(profile, moves) else Severity.INFO,
        words={"inserted": moves.under(markers).total(at.DEVICE_TIME) / value},
    )


def _is_avoidable(profile: Profile, moves: Query) -> bool:
    """Return whether enough of the moves have a cause that the program can change.

    XLA also inserts copies for first values of loops and for layouts that its products prefer, which no
    program avoids. Avoidable are moves that the program writes, and copies that are most of a program.
    """
    tree, nodes = profile.tree, moves.nodes()
    launches = exclusive_or_zeros(profile, at.JAX_LAUNCHES)
    program = tree.nearest(launches > 0)[nodes]
    nodes, program = nodes[program != NO_NODE], program[program != NO_NODE]
    if not len(nodes):
        return False
    launched, runs = launches[program], profile.counts(at.DEVICE_TIME)[nodes]
    spent, whole = (
        profile.exclusive(at.DEVICE_TIME)[nodes],
        profile.inclusive(at.DEVICE_TIME)[program],
    )
    _, of_program = np.unique(program, return_inverse=True)
    in_loop = runs > _RUNS_IN_LOOP * launched
    moved = sums(of_program, spent * ~in_loop, int(of_program.max()) + 1)[of_program]
    markers = at.nodes_named(profile, FrameKind.MARKER, {jax_programs.INSERTED})
    is_written = ~tree.at_or_below(markers.mask())[nodes]
    avoidable = is_written | (~in_loop & (moved > _MOSTLY_MOVES * whole))
    value = int(spent[avoidable & (launched >= _FEWEST_LAUNCHES)].sum())
    return value >= _LEAST_MOVED * total(profile, at.DEVICE_TIME)
