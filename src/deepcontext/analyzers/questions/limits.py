"""How far is the device from its limits: its peaks, its multiprocessors, and work all the time?

Rates need shapes and types and the machine's peaks (`summaries/roof.py`); silent where shapes do not tell a
reason, because a rate alone does not say what to change. Kernels' names tell unaligned products without
shapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.causes import Cause, at_place
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.places import query_of
from deepcontext.analyzers.shared.repeated_idle import IDLE, repeated_idle
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.gpu_metrics import EXPOSED_COMMUNICATION_NS, GPU_GAP_NS
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import total
from deepcontext.profiler.model.operator_inputs import split_name
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.operator_work import operator_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.operator_inputs import Inputs
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.operator_work import OperatorWork

# Products far from the peak: share of the time; a shorter call is mostly its launch; the first calls
# prepare libraries.
_LEAST_SHARE: Final = 0.10
_LEAST_CALL_NS: Final = 50_000
_FEWEST_CALLS: Final = 3
# Of the peak, in the fastest call: another program on the same cores cannot make all calls slow. A type is
# slow where another one, that holds all its values, is at least twice as fast.
_FAR: Final = 0.10
_FAR_UNALIGNED: Final = 0.5
_SLOW_TYPE: Final = 0.5
# Source: IEEE 754: f64 holds integers up to 2^53; f32 holds all values of f16 and bf16.
_HELD_BY: Final = {"i64": "f64", "i32": "f64", "f16": "f32", "bf16": "f32"}
_NAMES: Final = {
    "i64": "int64",
    "i32": "int32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}
_SMALL: Final = 16
# Source: NVIDIA, "Matrix Multiplication Background User's Guide", section 3: tensor cores are used best
# where sizes are multiples of 16 bytes.
_ALIGNED_BYTES: Final = 16
_BYTES: Final = {"f16": 2, "bf16": 2, "i8": 1, "f8e4m3fn": 1, "f8e5m2": 1}
# Inputs at which the two matrices begin.
_PRODUCTS: Final = {
    "aten::mm": 0,
    "aten::bmm": 0,
    "aten::addmm": 1,
    "aten::baddbmm": 1,
    "aten::_addmm_activation": 1,
}
# cuBLAS takes a kernel of CUTLASS that reads element by element: ``cutlass_75_tensorop_bf16_..._align1``;
# the number is of elements that are read at once: 8 of 16 bits, 4 of 32 bits are 16 bytes. Measured on an
# H100 (torch 2.11, CUDA 13.0): the product of 4,096 x 768 with 768 x 50,257 numbers of bfloat16 takes 3.34
# ms, with 50,304 columns 0.50 ms.
_UNALIGNED: Final = re.compile(
    r"cutlass_\w*tensorop_\w*(?:(?:f16|bf16|h\d+gemm)\w*_align[124]|(?:tf32|s1688)\w*_align[12])\b"
)
_LEAST_UNALIGNED: Final = 0.05
# Source: launching a kernel takes 5 to 10 us (NVIDIA, "Getting Started with CUDA Graphs", 2019).
_SHORT_KERNEL_NS: Final = 10_000
_LEAST_SHORT: Final = 0.15
_FEWEST_KERNELS: Final = 5
# Launches. Too few blocks for any GPU, where its multiprocessors were not recorded. Kernels of many kinds
# with small grids have one cause; those of collectives have few blocks on purpose.
_GRID: Final = "grid_block_count"
_BLOCK: Final = "block_thread_count"
_LEAST_LAUNCH_SHARE: Final = 0.05
_FEW_BLOCKS: Final = 16
# Of the multiprocessors: with blocks for more of them, little is left to gain.
_MOST_BUSY: Final = 0.9
_WARP: Final = {"nvidia": 32, "amd": 64}
_FEWEST_KINDS: Final = 3
_OF_COLLECTIVES: Final = ("nccl", "rccl")
# Idle time of the device, of all and at a line.
_LEAST_IDLE: Final = 0.20
_LEAST_IDLE_LINE: Final = 0.05
# Stalls; the last two are none: the instruction was issued, or could have been.
_SAMPLES: Final = "stall_samples"
_LEAST_REASON: Final = 0.30
_FEWEST_SAMPLES: Final = 100
_NO_STALLS: Final = ("selected", "not_selected")
# Source: NVIDIA, "Nsight Compute, Kernel Profiling Guide", section "Warp Stall Reasons".
_STALLS: Final = {
    "long_scoreboard": (
        "the kernel waits for global memory: make accesses contiguous and wider (vectorised "
        "loads), fuse the kernel with its neighbours so that values stay in registers"
    ),
    "short_scoreboard": "the kernel waits for shared memory or special functions: avoid bank conflicts",
    "math_pipe": "an arithmetic unit is fully used: use a cheaper type or tensor cores",
    "imc": (
        "the kernel misses the constant cache: read parameters once, index constants by values "
        "that are equal within a warp; type conversions with vector instructions need fewer "
        "constants"
    ),
    "lg_throttle": "the kernel issues too many memory instructions: load wider values, less often",
    "mio_throttle": "the kernel issues too many shared-memory instructions: load wider values",
    "barrier": "threads wait for one another: use smaller blocks, or less work between barriers",
    "wait": "the kernel waits for fixed latencies: unroll, so that more instructions are independent",
    "no_instruction": "the kernel waits for its instructions: its code is too large for the cache, or tiny",
    "branch_resolving": "the kernel branches too often: decide per warp, not per thread",
}


def find(profile: Profile) -> Iterator[Cause]:
    """Return what keeps a device from its limits."""
    far = list(_far_from_peak(profile))
    yield from far or _unaligned_kernels(profile)
    if total(profile, at.GPU_TIME):
        yield from _idle(profile)
        yield from _exposed(profile)
        yield from _stalls(profile)
    if at.judged_total(profile, at.GPU_TIME):
        yield from _launches(profile)
        yield from _short_kernels(profile)


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why operators are slow: `text` says what they are, for the title ("products of int64 numbers")."""

    text: str
    assumption: str
    advice: str
    misleads: str


def _far_from_peak(profile: Profile) -> Iterator[Cause]:
    work, metric = operator_work(profile), at.cost_metric(profile)
    if work is None or work.roof is None or not metric:
        return
    calls = np.maximum(work.calls, 1)
    fastest = work.time_ns / calls
    rows = profile.metrics[CALL_DURATION_NS.name]
    if not work.is_on_gpu and rows.minimum is not None:
        shortest = np.zeros(len(profile.tree))
        shortest[rows.node] = rows.minimum
        fastest = shortest[work.nodes]
    judged = (work.flops > 0) & (work.calls >= _FEWEST_CALLS) & (fastest >= _LEAST_CALL_NS)
    by_reason: dict[_Reason, dict[int, float]] = {}
    for index in np.flatnonzero(judged).tolist():
        found = _reason(profile, work, index, float(fastest[index] * calls[index]))
        if found is not None:
            saved = float(work.time_ns[index]) - found[1]
            by_reason.setdefault(found[0], {})[index] = saved
    whole = total(profile, metric)
    for reason, saved_ns in by_reason.items():
        which = np.zeros(len(work.nodes), np.bool_)
        which[list(saved_ns)] = True
        done = work.total(which)
        if done.time_ns < _LEAST_SHARE * whole:
            continue
        nodes = work.nodes[sorted(saved_ns, key=lambda each: (-work.time_ns[each], each))]
        lines = at.by_line(query_of(profile, nodes), metric)
        saved = round(sum(saved_ns.values()))
        yield Cause(
            key="far_from_peak",
            nodes=nodes.tolist(),
            frame=lines[0].frame if lines else None,
            metric=metric,
            value=saved,
            words={
                "text": reason.text,
                "part": min(done.time_ns / whole, 1.0),
                "rate": done.flops_per_second / 1e9,
                "more": _more(lines),
                "advice": reason.advice,
                "misleads": reason.misleads,
                "assumption": reason.assumption,
            },
            evidence={
                "flops_per_second": done.flops_per_second,
                "bytes_per_second": done.bytes_per_second,
                "of_peak_share": done.of_peak or 0.0,
                "calls": done.calls,
                "operator": profile.frame(int(nodes[0])).name,
            },
        )


def _more(lines: list[at.Location]) -> str:
    frame = lines[0].frame if lines else None
    what = "lines" if frame is None or frame.kind is FrameKind.PYTHON else "places"
    return f" and {len(lines) - 1} more {what}" if len(lines) > 1 else ""


def _reason(
    profile: Profile, work: OperatorWork, index: int, time_ns: float
) -> tuple[_Reason, float] | None:
    """Return why an operator is slow, and the time it needs without that; None if it is not known."""
    kind, flops = work.types[index], float(work.flops[index])
    rates = work.roof.peaks.flops_per_second if work.roof else {}
    better = _HELD_BY.get(kind, "")
    if 0 < rates.get(kind, 0.0) < _SLOW_TYPE * rates.get(better, 0.0):
        least_ns = flops / rates[better] * 1e9
        if time_ns * _SLOW_TYPE > least_ns:
            return _slow_type(kind, rates), least_ns
    least_ns = float(work.least_ns[index])
    name, inputs = split_name(profile.frame(int(work.nodes[index])).name)
    sizes = _matrix_sizes(name, inputs)
    if sizes is None or np.isnan(least_ns):
        return None
    rows, inner, columns = sizes
    if min(sizes) <= _SMALL and least_ns < _FAR * time_ns:
        small = _Reason(
            f"products of {rows} x {inner} with {inner} x {columns} matrices",
            "they run at the machine's peaks",
            "make one large product of them: where all have one factor, let the batch be rows of "
            "the other (reshape it, and multiply once, instead of expanding the factor); else "
            "merge the small dimension",
            "the factors all differ and are that small by nature",
        )
        return small, least_ns
    odd = [size for size in sizes if size * _BYTES.get(kind, _ALIGNED_BYTES) % _ALIGNED_BYTES]
    if work.is_on_gpu and odd and least_ns < _FAR_UNALIGNED * time_ns:
        step = _ALIGNED_BYTES // _BYTES[kind]
        unaligned = _Reason(
            f"products with a size of {odd[0]}",
            "they run at the machine's peaks",
            f"pad {odd[0]} to {-(-odd[0] // step) * step}, a multiple of {step} (for the best "
            "kernels of 64): tensor cores work on blocks",
            "the library already pads, or another limit than the size holds the kernel up",
        )
        return unaligned, least_ns
    return None


def _matrix_sizes(name: str, inputs: Inputs) -> tuple[int, int, int] | None:
    """Return rows, inner size and columns of a product; None for other operators."""
    first = _PRODUCTS.get(name)
    if first is None or len(inputs.shapes) < first + 2:
        return None
    left, right = inputs.shapes[first], inputs.shapes[first + 1]
    return None if left is None or right is None else (left[-2], left[-1], right[-1])


def _slow_type(kind: str, rates: Mapping[str, float]) -> _Reason:
    better, is_integer = _HELD_BY[kind], kind.startswith("i")
    return _Reason(
        f"products of {_NAMES[kind]} numbers",
        f"they run at the peak of {_NAMES[better]}",
        f"multiply in {_NAMES[better]}: this machine does so {rates[better] / rates[kind]:.3g} times as fast"
        + ("; it holds integers up to 2^53 exactly" if is_integer else ""),
        "sums beyond 2^53 must be exact"
        if is_integer
        else "memory is short, or the program is to run on a device with a fast path for the type",
    )


def _unaligned_kernels(profile: Profile) -> Iterator[Cause]:
    whole = at.judged_total(profile, at.GPU_TIME)
    kernels = at.nodes_named(
        profile, FrameKind.KERNEL, lambda name: _UNALIGNED.search(name) is not None
    )
    spent = kernels.total(at.GPU_TIME) if whole else 0
    if spent and spent >= _LEAST_UNALIGNED * whole:
        lines = at.by_line(kernels, at.GPU_TIME)
        names = {profile.frame(node).name for node in kernels.nodes().tolist()}
        yield Cause(
            key="products_of_odd_sizes",
            nodes=[node for each in lines for node in each.nodes],
            frame=lines[0].frame,
            metric=at.GPU_TIME,
            value=spent,
            words={"more": _more(lines)},
            evidence={"kernels": len(names), "kernel": at.kernel_name(min(names))},
        )


def _short_kernels(profile: Profile) -> Iterator[Cause]:
    kernels = Query(profile, profile.is_kind(FrameKind.KERNEL))
    least = _LEAST_SHORT * total(profile, at.GPU_TIME)
    for location in at.by_function(kernels, at.GPU_TIME, least):
        nodes = np.array(location.nodes)
        count = int(profile.counts(at.GPU_TIME)[nodes].sum())
        mean = location.value / max(count, 1)
        if location.frame is None or len(nodes) < _FEWEST_KERNELS or mean > _SHORT_KERNEL_NS:
            continue
        of_optimizer = 2 * (profile.tree.phase[nodes] == Phase.OPTIMIZER).sum() > len(nodes)
        yield Cause(
            key="many_short_kernels_of_optimizer" if of_optimizer else "many_short_kernels",
            nodes=location.nodes,
            frame=location.frame,
            metric=at.GPU_TIME,
            value=location.value,
            words={"count": count, "mean": mean / 1000},
            evidence={"launches_count": count, "mean_kernel_ns": int(mean)},
        )


def _launches(profile: Profile) -> Iterator[Cause]:
    """Find grids that leave most of the GPU unused, and blocks that do not fill a warp."""
    if not {_GRID, _BLOCK} <= set(profile.metrics):
        return
    warp = max((_WARP[name] for name in at.vendors(profile)), default=_WARP["nvidia"])
    kernels = np.flatnonzero(profile.is_kind(FrameKind.KERNEL))
    time_ns = profile.exclusive(at.GPU_TIME)[kernels]
    share = time_ns / total(profile, at.GPU_TIME)
    names = [profile.frame(node).name for node in kernels.tolist()]
    grid, block = (
        profile.exclusive(each)[kernels] / np.maximum(profile.counts(each)[kernels], 1)
        for each in (_GRID, _BLOCK)
    )
    processors = at.least_of_devices(profile, "multiprocessor_count")
    of_collectives = np.array(
        [name.lower().startswith(_OF_COLLECTIVES) for name in names], np.bool_
    )
    # The mean of several shapes is no shape.
    is_one_shape = _is_one_value(profile, _BLOCK)[kernels] & ~of_collectives
    few_blocks = _MOST_BUSY * processors or _FEW_BLOCKS
    is_small = (grid > 0) & (grid < few_blocks) & ~of_collectives
    kinds = {names[each] for each in np.flatnonzero(is_small).tolist()}
    is_batch = processors and len(kinds) >= _FEWEST_KINDS and 2 * share[is_small].sum() >= 1
    if is_batch:
        small, blocks = time_ns[is_small], grid[is_small]
        mean = float(np.average(blocks, weights=small))
        nodes = kernels[is_small][np.argsort(-small)].tolist()
        yield Cause(
            key="batch_too_small",
            nodes=nodes,
            frame=at.frame_of(profile, nodes[0]),
            metric=at.GPU_TIME,
            value=int(small.sum()),
            saved=round(float((small * (1 - blocks / processors)).sum())),
            severity=Severity.of_share(float(share[is_small].sum()) * (1 - mean / processors)),
            words={"blocks": mean, "processors": processors},
            evidence={
                "kernels": len(kinds),
                "grid_blocks_count": round(mean, 1),
                "multiprocessors": processors,
            },
        )
    for index in np.flatnonzero(share >= _LEAST_LAUNCH_SHARE).tolist():
        few, threads = float(grid[index]), float(block[index])
        place = at.Location(
            at.frame_of(profile, int(kernels[index])),
            (int(kernels[index]),),
            int(time_ns[index]),
            1,
        )
        words: dict[str, object] = {
            "name": at.kernel_name(names[index]),
            "processors": processors,
            "blocks": few,
            "what": f"{processors} multiprocessors" if processors else "a GPU",
            "threads": threads,
            "warp": warp,
        }
        if is_small[index] and not is_batch:
            yield at_place(
                "grid_too_small" if processors else "grid_too_small_for_any",
                place,
                at.GPU_TIME,
                saved=round(place.value * (1 - few / (processors or few))),
                words=words,
                evidence={
                    "grid_blocks_count": round(few, 1),
                    "multiprocessors": processors or "unknown",
                },
            )
        if is_one_shape[index] and (0 < threads < warp or threads % warp):
            # Share of idle threads in the last warp of a block.
            idle = 1 - threads / (-(-threads // warp) * warp)
            yield at_place(
                "odd_blocks",
                place,
                at.GPU_TIME,
                saved=round(place.value * idle),
                severity=Severity.of_share(idle * float(share[index])),
                words=words,
                evidence={"block_threads_count": round(threads, 1), "warp_threads_count": warp},
            )


def _is_one_value(profile: Profile, metric: str) -> npt.NDArray[np.bool_]:
    """Return whether all events of each node have the same value, shape (nodes,)."""
    rows = profile.metrics[metric]
    result = np.zeros(len(profile.tree), np.bool_)
    result[rows.node] = rows.count == 1
    if rows.minimum is not None and rows.maximum is not None:
        result[rows.node] |= rows.minimum == rows.maximum
    return result


def _exposed(profile: Profile) -> Iterator[Cause]:
    """Find communication during which a device computes nothing."""
    exposed = total(profile, EXPOSED_COMMUNICATION_NS.name)
    span = total(profile, at.GPU_TIME) + total(profile, IDLE) + total(profile, GPU_GAP_NS.name)
    if not exposed or span < at.least_total_ns(profile):
        return
    query = Query(profile, profile.exclusive(EXPOSED_COMMUNICATION_NS.name) > 0)
    lines = at.by_line(query, EXPOSED_COMMUNICATION_NS.name)
    nodes = [node for each in lines for node in each.nodes]
    yield Cause(
        key="communication_exposed",
        nodes=nodes,
        frame=next((each.frame for each in lines if each.frame), None),
        metric="elapsed GPU time",
        value=exposed,
        whole=span,
        words={"kernel": at.kernel_name(profile.frame(nodes[0]).name)},
        evidence={
            "kernels_count": int(profile.counts(at.GPU_TIME)[nodes].sum()),
            at.GPU_TIME: int(profile.exclusive(at.GPU_TIME)[nodes].sum()),
        },
    )


def _stalls(profile: Profile) -> Iterator[Cause]:
    """Find what the instructions of hot kernels wait for."""
    if not total(profile, _SAMPLES):
        return
    samples, spent = profile.exclusive(_SAMPLES), profile.inclusive(at.GPU_TIME)
    hot = profile.is_kind(FrameKind.KERNEL) & (spent >= _LEAST_SHARE * total(profile, at.GPU_TIME))
    for kernel in np.flatnonzero(hot).tolist():
        frames = [(child, profile.frame(child)) for child in profile.tree.children(kernel)]
        reasons = {
            frame.name: (int(samples[child]), child)
            for child, frame in frames
            if frame.kind is FrameKind.STALL and not frame.name.endswith(_NO_STALLS)
        }
        count = sum(number for number, _ in reasons.values())
        if count < _FEWEST_SAMPLES:
            continue
        reason, (most, node) = max(reasons.items(), key=lambda item: item[1])
        part = most / count
        if part >= _LEAST_REASON:
            value = int(spent[kernel])
            share = value / total(profile, at.GPU_TIME)
            advice = next((text for key, text in _STALLS.items() if key in reason.lower()), "")
            yield Cause(
                key="stalls",
                nodes=(kernel, node),
                metric=at.GPU_TIME,
                value=value,
                saved=round(value * part),
                severity=Severity.of_share(share * part),
                words={
                    "part": part,
                    "name": profile.frame(kernel).name,
                    "reason": reason,
                    "advice": advice or "see the vendor's description of this stall reason",
                },
                evidence={"reason_share": part},
            )


def _idle(profile: Profile) -> Iterator[Cause]:
    """Find the lines at which the host is while the device is idle again and again."""
    if not total(profile, IDLE):
        return
    idle = repeated_idle(profile)
    # Kernels of several streams overlap, so the device was busy for this time at most.
    span = int(idle.sum()) + total(profile, at.GPU_TIME)
    if span < at.least_total_ns(profile) or idle.sum() < _LEAST_IDLE * span:
        return
    nodes = np.flatnonzero(idle)
    owner = at.owners(profile, nodes)
    nodes, owner = nodes[owner != NO_NODE], owner[owner != NO_NODE]
    # A line has the gaps below it that belong to no deeper line.
    number = at.line_numbers(profile)[profile.tree.frame[owner]]
    lines = []
    for line in np.flatnonzero(np.bincount(number, weights=idle[nodes]) >= _LEAST_IDLE_LINE * span):
        members = nodes[number == line]
        members = members[np.argsort(-idle[members], kind="stable")].tolist()
        frame = profile.frame(int(owner[number == line][0]))
        lines.append(at.Location(frame, tuple(members), int(idle[members].sum()), 0))
    if not lines:
        return
    lines.sort(key=lambda each: (-each.value, each.nodes))
    loads = any("DataLoader" in profile.frame(node).name for node in lines[0].nodes)
    few = [node for each in lines for node in each.nodes[:2]]
    yield Cause(
        key="device_idle_for_data" if loads else "device_idle",
        nodes=few if len(lines) > 1 else lines[0].nodes,
        frame=lines[0].frame,
        metric="elapsed GPU time",
        value=sum(each.value for each in lines),
        whole=span,
        words={"more": _more(lines)},
        evidence={"all_idle_share": float(idle.sum()) / span, "place_share": lines[0].value / span},
    )
