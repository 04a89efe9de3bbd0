"""JAX fusion and layout: copies and transposes, work done twice or in vain, memory-bound fusions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_branches import branches_under_vmap
from deepcontext.analyzers.shared.jax_calls import function_of
from deepcontext.analyzers.shared.jax_diagonals import products_with_diagonals
from deepcontext.analyzers.shared.jax_factorisations import repeated_factorisations
from deepcontext.analyzers.shared.jax_forward_twice import forward_twice
from deepcontext.analyzers.shared.jax_hessians import hessians_for_products
from deepcontext.analyzers.shared.jax_jacobians import tall_jacobians
from deepcontext.analyzers.shared.jax_launches import in_small_launches
from deepcontext.analyzers.shared.jax_permutations import permutations_for_few_rows
from deepcontext.analyzers.shared.jax_transforms import complex_transforms
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import BYTES_MOVED
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, total
from deepcontext.profiler.model.package import Origin, package_of
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.source import is_user_file
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.jax.memory import plain_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile

_LEAST_MOVED: Final = 0.10
# Arrays that are prepared once are not worth a change.
_LEAST_LAUNCHES: Final = 5
# Runs of an operation for each launch of its program, from which on the operation is in a loop.
_RUNS_IN_LOOP: Final = 1.5
# A loop passes counters and small states on, at 0.6 us a copy of 8 bytes or of 1 KiB (measured); a page at
# 10 GB/s takes less.
_LEAST_BYTES: Final = 4096
# Of a program's time, in copies: what the program computes could be a part of another program.
_MOSTLY_MOVES: Final = 0.5
# Runs of a product for each run of a fusion: one follows the other.
_RUNS_TOGETHER: Final = 0.5
# XLA names a fusion after its operations: "transpose_copy_fusion".
_MOVES: Final = ("copy", "transpose")
_LEAST_RECOMPUTED: Final = 0.10
# Runs in the forward divided by runs in the recomputation, for one line; both are sampled.
_LEAST_COMPUTED_BEFORE: Final = 0.8
_LEAST_FUSION: Final = 0.15
# Share of the device time; the rate of a shorter operation is noise.
_LEAST_TIMED: Final = 0.01
# A fusion that reads and writes at full speed reaches 0.5 to 0.7 of a product that only reads, because a
# store reads its cache line first, and 0.33 to 0.43 where other programs use the processors (measured).
_NEAR_THE_ROOF: Final = 0.25
# With a smaller share of the elapsed time, the program does not wait for the device.
_LEAST_BUSY: Final = 0.05
# Flop per byte below which arithmetic limits no current CPU or GPU.
_MEMORY_BOUND: Final = 1.0


def _find(profile: Profile) -> list[Finding]:
    busy = source_locations.judged_total(profile, source_locations.DEVICE_TIME)
    if not busy or busy < _LEAST_BUSY * profile.run.wall_ns:
        return []
    return [
        *_moved(profile),
        *_recomputed(profile),
        *forward_twice(profile),
        *hessians_for_products(profile),
        *tall_jacobians(profile),
        *repeated_factorisations(profile),
        *branches_under_vmap(profile),
        *permutations_for_few_rows(profile),
        *products_with_diagonals(profile),
        *complex_transforms(profile),
        *_memory_bound(profile),
    ]


def _moved(profile: Profile) -> list[Finding]:
    """Report operations that only move values, whether written by the user or inserted by XLA."""
    moves = _moves(profile)
    # What a factorisation moves is a part of it.
    factorised = source_locations.below_findings(profile, repeated_factorisations(profile))
    left_out = in_small_launches(profile) | factorised
    moves = Query(profile, moves.mask() & ~left_out)
    value = moves.total(source_locations.DEVICE_TIME)
    share = value / total(profile, source_locations.DEVICE_TIME)
    if share < _LEAST_MOVED:
        return []
    markers = source_locations.nodes_named(profile, FrameKind.MARKER, {jax_programs.INSERTED})
    inserted = moves.under(markers).total(source_locations.DEVICE_TIME) / value
    found = source_locations.by_line(moves, source_locations.DEVICE_TIME)
    finding = _finding(
        profile,
        tuple(node for location in found for node in location.nodes),
        value,
        f"copies and transposes of arrays take {share:.0%} of the device time ({inserted:.0%} "
        "of it inserted by XLA), most of it for "
        f"{source_locations.location_text(profile, found[0].frame)}",
        (
            "give the result the layout of its use: keep one order of dimensions (NHWC for "
            "convolutions on a CPU, batch dimensions first for products), so that nothing is "
            "transposed around this line; read the old value of loop state before it is "
            "overwritten, and donate arguments that are overwritten (donate_argnums); where a loop hands one "
            "state on as another (before, now = now, following), unroll two passes (unroll=2)"
        ),
        source_locations.bound_of_copies(profile, source_locations.DEVICE_TIME, value),
    )
    if _is_avoidable(profile, moves):
        return [finding]
    return [dataclasses.replace(finding, severity=Severity.INFO)]


def _is_avoidable(profile: Profile, moves: Query) -> bool:
    """Return whether enough of the moves have a cause that the program can change.

    XLA also inserts copies for first values of loops and for layouts that its products prefer, which no
    program avoids. Avoidable are moves that the program writes, copies in each pass of a loop that changes a
    part of the copied array, unless these are tiny or the loop is a package's (a sampler), and copies that
    are most of a program. A loop that computes all of its state anew needs the old state until then, and
    XLA copies one to the other.
    """
    tree, nodes = profile.tree, moves.nodes()
    launches = exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)
    program = tree.nearest(launches > 0)[nodes]
    nodes, program = nodes[program != NO_NODE], program[program != NO_NODE]
    if not len(nodes):
        return False
    launched, runs = launches[program], profile.counts(source_locations.DEVICE_TIME)[nodes]
    spent = profile.exclusive(source_locations.DEVICE_TIME)[nodes]
    whole = profile.inclusive(source_locations.DEVICE_TIME)[program]
    _, of_program = np.unique(program, return_inverse=True)
    is_in_loop = runs > _RUNS_IN_LOOP * launched
    moved = sums(of_program, spent * ~is_in_loop, int(of_program.max()) + 1)[of_program]
    markers = source_locations.nodes_named(profile, FrameKind.MARKER, {jax_programs.INSERTED})
    is_written = ~tree.at_or_below(markers.mask())[nodes]
    in_loop = is_in_loop & ~_of_packages(profile)[nodes] & ~_are_tiny(profile)[nodes]
    in_loop[in_loop] = _are_of_updated(profile, nodes[in_loop], program[in_loop])
    avoidable = is_written | in_loop | (~is_in_loop & (moved > _MOSTLY_MOVES * whole))
    value = int(spent[avoidable & (launched >= _LEAST_LAUNCHES)].sum())
    return value >= _LEAST_MOVED * total(profile, source_locations.DEVICE_TIME)


def _are_of_updated(
    profile: Profile, nodes: source_locations.Ints, program: source_locations.Ints
) -> source_locations.Mask:
    """Return which copies have the shape of an array of which their program changes a part, shape (nodes,).

    Args:
        profile: the profile.
        nodes: the copies.
        program: the nodes of their programs' calls, shape (nodes,).
    """
    shapes: dict[tuple[str, str], str] = {}
    updated: set[tuple[str, str]] = set()
    for each in jax_operations.operations(profile):
        function = function_of(each.program)
        shapes[function, each.name] = each.shape
        if each.updates_in_place:
            updated.add((function, each.shape))
    found = []
    for node, call in zip(nodes.tolist(), program.tolist(), strict=True):
        function = plain_name(profile.frame(call).name)
        found.append((function, shapes.get((function, profile.frame(node).name), "")) in updated)
    return np.array(found, np.bool_)


def _are_tiny(profile: Profile) -> source_locations.Mask:
    """Return which operations move so little that running them takes the time, shape (nodes,)."""
    if BYTES_MOVED.name not in profile.metrics:
        return np.zeros(len(profile.tree), np.bool_)
    runs = profile.counts(source_locations.DEVICE_TIME)
    return np.asarray(profile.exclusive(BYTES_MOVED.name) < _LEAST_BYTES * runs)


def _of_packages(profile: Profile) -> source_locations.Mask:
    """Return which nodes lie right below code of a package other than a framework, shape (nodes,)."""
    frames, tree = profile.frames, profile.tree
    origins = [package_of(file).origin if file else Origin.FRAMEWORK for file in frames.strings]
    is_package = np.array([each is Origin.INSTALLED for each in origins], np.bool_)[frames.file]
    is_python = frames.kind == FrameKind.PYTHON
    nearest = tree.nearest((is_python & (is_package | frames.is_user_code()))[tree.frame])
    return np.asarray((nearest != NO_NODE) & is_package[tree.frame[nearest]])


def _moves(profile: Profile) -> Query:
    """Select copies, transposes, and fusions with such names that compute nothing."""
    named = source_locations.nodes_named(
        profile, FrameKind.HLO, lambda name: any(each in name for each in _MOVES)
    )
    if "flops" not in profile.metrics:
        return named
    return Query(profile, named.mask() & (profile.exclusive("flops") == 0))


def _recomputed(profile: Profile) -> list[Finding]:
    value = _done_twice(profile)
    share = value / total(profile, source_locations.DEVICE_TIME)
    if share < _LEAST_RECOMPUTED:
        return []
    nodes = profile.query().phase(Phase.RECOMPUTE).nodes()
    order = (-profile.exclusive(source_locations.DEVICE_TIME)[nodes]).argsort(kind="stable")
    return [
        _finding(
            profile,
            tuple(nodes[order].tolist()),
            value,
            f"computing the forward again takes {share:.0%} of the device time",
            (
                "keep more of the forward: a policy for jax.checkpoint that saves the products "
                "(checkpoint_policies.dots_saveable), or checkpoint fewer layers"
            ),
            source_locations.bound(
                profile, source_locations.DEVICE_TIME, value, "these operations cost nothing"
            ),
        )
    ]


def _done_twice(profile: Profile) -> int:
    """Return the device time of values that were computed twice, ns.

    XLA merges equal computations of one program and gives the operation either name, so a line that
    ran less often in the forward was not computed twice.
    """
    times = profile.exclusive(source_locations.DEVICE_TIME)
    counts = profile.counts(source_locations.DEVICE_TIME)
    first = _by_line(profile, Phase.FORWARD, counts)
    spent = _by_line(profile, Phase.RECOMPUTE, times)
    runs = _by_line(profile, Phase.RECOMPUTE, counts)
    return sum(
        value
        for line, value in spent.items()
        if first.get(line, 0) >= _LEAST_COMPUTED_BEFORE * runs.get(line, 0)
    )


def _by_line(profile: Profile, phase: Phase, values: source_locations.Ints) -> dict[int, int]:
    """Return the sum of values over operations of a phase, by line of user code.

    Loops lie above their operations, so nodes count without their descendants.
    """
    nodes = np.flatnonzero((profile.tree.phase == phase) & (values > 0))
    owner = source_locations.climb(profile, nodes, profile.is_user_code())
    frame = profile.tree.frame[owner]
    line = profile.frames.source_line()[frame]
    lines, number = np.unique(np.where(owner == NO_NODE, -1, line), return_inverse=True)
    sums = np.zeros(len(lines), np.int64)
    np.add.at(sums, number, values[nodes])
    return dict(zip(lines.tolist(), sums.tolist(), strict=True))


def _memory_bound(profile: Profile) -> list[Finding]:
    if not source_locations.has_jax(profile):
        return []
    whole = total(profile, source_locations.DEVICE_TIME)
    operations = jax_operations.operations(profile)
    roof = _Roof.of(operations, whole)
    found = []
    told = {
        (profile.frame(finding.nodes[0]).file, profile.frame(finding.nodes[0]).name)
        for finding in complex_transforms(profile)
    }
    differentiated = source_locations.below_findings(profile, tall_jacobians(profile))
    names = {profile.frame(node).name for node in np.flatnonzero(differentiated).tolist()}
    for fusion in jax_operations.fusions(profile):
        if fusion.device_ns / whole < _LEAST_FUSION:
            break
        if (fusion.source.file, fusion.source.function) in told or fusion.name in names:
            continue
        is_move = not fusion.flops and any(each in fusion.name for each in _MOVES)
        if fusion.bytes and fusion.intensity < _MEMORY_BOUND and not is_move:
            finding = _fusion_finding(profile, fusion, roof)
            if not _is_apart(fusion, operations):
                finding = dataclasses.replace(finding, severity=Severity.INFO)
            found.append(finding)
    return found


def _is_apart(
    fusion: jax_operations.Operation, operations: Sequence[jax_operations.Operation]
) -> bool:
    """Return whether a fusion is in another program than the products that run beside it.

    XLA folds a fusion into a product of the same program where that pays.
    """
    dense = [each for each in operations if each.is_dense]
    return not any(each.program == fusion.program for each in dense) and any(
        each.executions >= _RUNS_TOGETHER * fusion.executions for each in dense
    )


@dataclass(frozen=True, slots=True)
class _Roof:
    """The best rates of the profile's operations: a roofline that needs no table of devices.

    The device's true roof is at or above this roof, so a position below it is at most too good.

    Attributes:
        bytes_per_second: the highest bandwidth of one operation.
        flops_per_second: the highest rate of arithmetic of one operation.
    """

    bytes_per_second: float
    flops_per_second: float

    @classmethod
    def of(cls, operations: Sequence[jax_operations.Operation], whole_ns: int) -> _Roof:
        """Return the roof of the operations that are long enough to time."""
        timed = [each for each in operations if each.device_ns >= _LEAST_TIMED * whole_ns]
        return cls(
            max((each.bytes_per_second for each in timed), default=0.0),
            max((each.flops_per_second for each in timed), default=0.0),
        )

    def is_memory_bound(self, fusion: jax_operations.Operation) -> bool:
        """Return whether memory bandwidth limits a fusion."""
        return fusion.intensity * self.bytes_per_second <= self.flops_per_second

    def position(self, fusion: jax_operations.Operation) -> float:
        """Return a fusion's rate as a share of the attainable rate at its intensity, 0 to 1.

        Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009: attainable flop/s
        is the smaller of peak flop/s and bandwidth times flop/byte.
        """
        if fusion.flops and not self.is_memory_bound(fusion):
            return fusion.flops_per_second / (self.flops_per_second or 1.0)
        return fusion.bytes_per_second / (self.bytes_per_second or 1.0)


def _fusion_finding(profile: Profile, fusion: jax_operations.Operation, roof: _Roof) -> Finding:
    nodes = source_locations.nodes_named(profile, FrameKind.HLO, {fusion.name}).nodes()
    order = (-profile.inclusive(source_locations.DEVICE_TIME)[nodes]).argsort(kind="stable")
    position = min(roof.position(fusion), 1.0)
    share = fusion.device_ns / total(profile, source_locations.DEVICE_TIME)
    is_far = position < _NEAR_THE_ROOF
    lines = dict.fromkeys(
        f"{Path(member.source.file).name}:{member.source.line}"
        for member in fusion.members
        if member.source.line and is_user_file(member.source.file)
    )
    saved = round(fusion.device_ns * (1 - position)) if is_far else fusion.device_ns
    rate = fusion.bytes_per_second / 1e9
    return Finding(
        id="jax_fusion",
        # That other operations were faster says where to look, and not what to change.
        severity=Severity.INFO if is_far else Severity.of_share(share),
        title=(
            f"fusion '{fusion.name}' of {fusion.program} moves memory for {share:.0%} of the device "
            f"time: {fusion.intensity:.2g} flop a byte, {rate:.3g} GB/s, {position:.0%} of the "
            "roofline"
        ),
        nodes=tuple(nodes[order].tolist()[:8]),
        evidence={
            "device_time_ns": fusion.device_ns,
            "device_share": share,
            "flops_per_byte": round(fusion.intensity, 3),
            "bandwidth_gb_per_s": round(rate, 3),
            "of_roofline_share": position,
            "lines": ", ".join(list(lines)[:6]),
        },
        gain=source_locations.bound(
            profile,
            source_locations.DEVICE_TIME,
            saved,
            "the fusion runs at the roofline" if is_far else "its values never leave the registers",
        ),
        advice=(
            "other operations got a much higher memory bandwidth: check the fusion's layout "
            "(transposes, strided slices), its size (vmap or batch small arrays), and whether its "
            "functions (exp, tanh, random bits) need more arithmetic than is counted"
            if is_far
            else "the fusion is near the memory bandwidth: keep values in a narrower type (bfloat16), "
            "or pass over the data fewer times (fold the fusion into the product before or after it)"
        ),
        misleads=(
            "the roofline consists of the best rates in this profile, which operations on small, "
            "cached arrays raise; transcendental functions cost more than their counted flop"
        ),
    )


def _finding(
    profile: Profile, nodes: tuple[int, ...], value: int, title: str, advice: str, gain: Gain
) -> Finding:
    share = value / total(profile, source_locations.DEVICE_TIME)
    return Finding(
        id="jax_fusion",
        severity=Severity.of_share(share),
        title=title,
        nodes=tuple(nodes)[:8],
        evidence={"device_time_ns": value, "device_share": share},
        gain=gain,
        advice=advice,
        misleads=(
            "device times of short programs are sampled; recomputing saves memory that the program "
            "may need"
        ),
    )


ANALYZER = Analyzer("jax_fusion", "what do operations and fusions of XLA cost?", _find)
