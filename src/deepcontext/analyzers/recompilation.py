"""Recompilation: torch.compile or JAX compiles the same function again, in pieces, or with its data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_constants import captured_arrays
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

# torch's name for the n-th compilation of the m-th piece of code.
_REGION: Final = re.compile(r"Torch-Compiled Region: (?:\d+/)?(\d+)/(\d+)$")
# The first change of a size makes this size dynamic, as torch.compile intends.
_LEAST_RECOMPILATIONS: Final = 2
_LEAST_JAX_SHARE: Final = 0.05
# The weights of a model have a few shapes, and functions of JAX create each weight.
_LEAST_OF_LIBRARY: Final = 8
_STATIC: Final = "static argument"
# A change of an argument's shape alone: "argument 'x' changed from f32[8,4] to f32[6,4]".
_OTHER_SHAPE: Final = re.compile(r"argument .* changed from (\w+)\[[\d,]*\] to \1\[[\d,]*\]")


def _find(profile: Profile) -> list[Finding]:
    return [*_torch(profile), *_graph_breaks(profile), *_jax(profile)]


def _regions(profile: Profile) -> dict[int, dict[int, list[int]]]:
    """Return nodes by piece of code and number of its compilation."""
    found: dict[int, dict[int, list[int]]] = {}
    query = source_locations.nodes_named(
        profile, FrameKind.OPERATOR, lambda n: _REGION.match(n) is not None
    )
    for node in query.nodes().tolist():
        match = _REGION.match(profile.frame(node).name)
        if match:
            code, again = int(match[1]), int(match[2])
            found.setdefault(code, {}).setdefault(again, []).append(node)
    return found


def _torch(profile: Profile) -> list[Finding]:
    found = []
    time = setup_time(profile)
    gain = None
    if time is not None and time.compiling_ns and profile.run.wall_ns:
        share = min(1.0, time.compiling_ns / profile.run.wall_ns)
        gain = Gain("elapsed time", time.compiling_ns, share, "nothing is compiled")
    for versions in _regions(profile).values():
        again = max(versions)
        if again < _LEAST_RECOMPILATIONS:
            continue
        nodes = [node for each in sorted(versions) for node in versions[each]]
        location = source_locations.by_line(_query(profile, nodes), HOST_TIME_NS.name)[0]
        found.append(
            Finding(
                id="recompilation",
                severity=Severity.HIGH if again >= 4 else Severity.WARNING,  # noqa: PLR2004
                title=(
                    f"torch.compile compiled the function called at "
                    f"{source_locations.location_text(profile, location.frame)} {again + 1} times"
                ),
                nodes=tuple(nodes[:8]),
                evidence={
                    "recompilations_count": again,
                    "operators_while_compiling_ns": source_locations.compiling(profile).total(
                        HOST_TIME_NS.name, inclusive=True
                    ),
                },
                gain=gain,
                advice=(
                    "run once with TORCH_LOGS=recompiles to see which guard failed; mark sizes "
                    "that change (torch._dynamo.mark_dynamic, dynamic=True), pad batches to a few "
                    "sizes, and pass numbers that change as tensors"
                ),
                misleads=(
                    "there are few shapes, each used many times: compiling each shape once can be "
                    "the fastest; the bound includes the first compilation, and excludes "
                    "compilations inside a running region"
                ),
            )
        )
    return found


def _graph_breaks(profile: Profile) -> list[Finding]:
    """Report compiled regions that run below another region, because they follow a graph break."""
    regions = _regions(profile)
    all_nodes = [node for each in regions.values() for nodes in each.values() for node in nodes]
    if not all_nodes:
        return []
    query = _query(profile, all_nodes)
    # The path on which a CUDA graph was captured is repeated below its replay.
    replayed = profile.tree.below(profile.query().kind(FrameKind.GRAPH).mask())
    inner = Query(profile, query.mask() & profile.tree.below(query.mask()) & ~replayed)
    # Each piece is below the previous piece, so lines are collected for each node separately.
    lines: dict[tuple[str, int], list[int]] = {}
    owners = source_locations.climb(profile, inner.nodes(), profile.is_user_code())
    for node, owner in zip(inner.nodes().tolist(), owners.tolist(), strict=True):
        if owner != NO_NODE:
            at = profile.frame(owner)
            lines.setdefault((at.file, at.line), []).append(node)
    found = [_by_line(profile, nodes) for nodes in lines.values()]
    return [
        Finding(
            id="recompilation",
            severity=Severity.WARNING,
            title=(
                f"the graph breaks at {source_locations.location_text(profile, location.frame)}: "
                "torch.compile runs the function in pieces"
            ),
            nodes=location.nodes[:8],
            evidence={"calls_count": location.count},
            advice=(
                "remove code that cannot be traced at that line (print, .item(), data-dependent "
                "'if', calls of C extensions); TORCH_LOGS=graph_breaks prints the reason, and "
                "torch.compile(fullgraph=True) turns breaks into errors"
            ),
            misleads="the pieces are large: then a break costs a few microseconds a call",
        )
        for location in found
    ]


def _by_line(profile: Profile, nodes: list[int]) -> source_locations.Location:
    """Return the nodes of one line as a location; calls of nested pieces count once each."""
    (location, *_) = source_locations.by_line(_query(profile, nodes), HOST_TIME_NS.name)
    return location


def _jax(profile: Profile) -> list[Finding]:
    if not source_locations.has_jax(profile):
        return []
    elapsed = profile.run.wall_ns
    groups: dict[tuple[str, object], list[jax_programs.Recompilation]] = {}
    for row in jax_programs.recompilations(profile):
        groups.setdefault((row.function, row.path[-1:]), []).append(row)
    found = []
    for rows in groups.values():
        spent = sum(row.spent_ns for row in rows)
        share = spent / elapsed if elapsed else 0.0
        again = sum(row.count for row in rows)
        is_set_up = not rows[0].is_of_user and again < _LEAST_OF_LIBRARY
        if share >= _LEAST_JAX_SHARE and not is_set_up:
            found.append(_jax_finding(profile, rows, spent, share))
    return [*found, *captured_arrays(profile)]


def _jax_finding(
    profile: Profile, rows: list[jax_programs.Recompilation], spent: int, share: float
) -> Finding:
    first = rows[0]
    count = sum(row.count for row in rows)
    at = first.path[-1] if first.path else None
    frame = Frame(FrameKind.PYTHON, at.function, at.file, at.line) if at else None
    return Finding(
        id="recompilation",
        # Programs have a second shape for a reason: a last batch, an evaluation, a longer input.
        severity=Severity.INFO if _is_second_shape(rows) else Severity.of_share(share),
        title=(
            f"JAX compiled '{first.function}' {'once' if count == 1 else f'{count} times'} more, "
            f"called at "
            f"{source_locations.location_text(profile, frame)}"
        ),
        nodes=_jit_nodes(profile, first.function, at),
        evidence={
            "recompilations_count": count,
            "compile_ns": spent,
            "compile_share": share,
            "reason": ", ".join(sorted({row.reason for row in rows})),
            "changes": "; ".join(
                dict.fromkeys(change for row in rows[:3] for change in row.changes[:1])
            ),
        },
        gain=Gain("elapsed time", spent, min(share, 1.0), "the function is compiled only once"),
        advice=_jax_advice(rows),
        misleads="every shape is used often enough to pay for its compilation",
    )


def _is_second_shape(rows: list[jax_programs.Recompilation]) -> bool:
    """Return whether a function was compiled for two shapes, and for nothing else."""
    changes = [change for row in rows for change in row.changes]
    return sum(row.count for row in rows) == 1 and bool(
        changes and all(_OTHER_SHAPE.fullmatch(change) for change in changes)
    )


def _jax_advice(rows: list[jax_programs.Recompilation]) -> str:
    reasons, function = {row.reason for row in rows}, rows[0].function
    if "cache" in reasons:
        return "raise the size of the cache that evicted the program"
    if reasons == {"new object"}:
        return (
            f"make the jitted function once, outside the loop (name = jax.jit(...) above it): a "
            "lambda, a functools.partial or an inner function made in the loop is a new function "
            f"each time, and so are jax.numpy calls on new shapes; if '{function}' is not your "
            "function, make the array once, or put the line under jax.jit"
        )
    if not rows[0].is_of_user:
        return (
            f"put the lines that call '{function}' under one jax.jit: outside of jit, each operation "
            "becomes a separate program for every new shape"
        )
    if all(change.startswith(_STATIC) for row in rows for change in row.changes):
        return (
            "pass the changing argument (evidence: 'changes') as an array, not in static_argnames or "
            "static_argnums; if the argument must be static, keep it to a few values"
        )
    return (
        "pad the changed arguments (evidence: 'changes') to a few shapes; pass numbers that change "
        "as arrays, not as static arguments"
    )


def _jit_nodes(profile: Profile, function: str, at: jax_programs.Source | None) -> tuple[int, ...]:
    """Return the calls of a jitted function, only calls from the line `at` if there are any."""
    query = source_locations.nodes_named(
        profile, FrameKind.OPERATOR, {f"jit({function})", function}
    )
    nodes = query.nodes()
    owners = source_locations.climb(profile, nodes, profile.is_user_code()).tolist()
    there = [
        node
        for node, owner in zip(nodes.tolist(), owners, strict=True)
        if owner != NO_NODE
        and at is not None
        and (profile.frame(owner).file, profile.frame(owner).line) == (at.file, at.line)
    ]
    return tuple((there or nodes.tolist())[:8])


def _query(profile: Profile, nodes: list[int]) -> Query:
    mask = np.zeros(len(profile.tree), np.bool_)
    mask[nodes] = True
    return Query(profile, mask)


ANALYZER = Analyzer("recompilation", "is the same function compiled again and again?", _find)
