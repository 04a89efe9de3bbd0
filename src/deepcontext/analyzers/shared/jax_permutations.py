"""Permutations of all rows of which a program takes a few rows.

`jax.random.permutation` and `choice` without replacement sort random numbers, one for each row. Recognised
by such a sort and a gather of far fewer rows in the same program, or in the same function outside of `jit`.
Does not judge permutations of which a loop takes one part after another.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import at_line, function_of
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros, inclusive_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax.memory import plain_name
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.jax.operations import Operation

# Source: jax/_src/random.py, `permutation` and `choice` call the jitted function `_shuffle`.
_SHUFFLE: Final = "jit(_shuffle)"
_SLICES: Final = frozenset({"slice", "dynamic_slice"})
_ROWS: Final = re.compile(r"\(?\w+\[(\d+)")
_LEAST_SHARE: Final = 0.1
_LEAST_LAUNCHES: Final = 5
# Rows taken of each permutation: with a tenth of the rows, drawing with replacement repeats one in twenty.
_MOST_TAKEN: Final = 0.1


def permutations_for_few_rows(profile: Profile) -> list[Finding]:
    """Return a finding for each line that permutes far more rows than it takes."""
    return profile.once(permutations_for_few_rows, lambda: _permutations(profile))


def at_permutations(profile: Profile) -> source_locations.Mask:
    """Return which nodes belong to the lines of these findings, shape (nodes,)."""
    owner = nearest_user(profile)
    line = source_locations.line_numbers(profile)
    of_node = np.where(owner == NO_NODE, 0, line[profile.tree.frame[owner]])
    told = [finding.nodes[0] for finding in permutations_for_few_rows(profile)]
    return np.isin(of_node, of_node[told])


def _permutations(profile: Profile) -> list[Finding]:
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    if not whole or not source_locations.has_jax(profile):
        return []
    operations = jax_operations.operations(profile)
    return [*_in_programs(profile, operations, whole), *_of_functions(profile, operations, whole)]


def _in_programs(
    profile: Profile, operations: Sequence[Operation], whole: int
) -> Iterable[Finding]:
    """Report lines whose program sorts and gathers."""
    lines: dict[tuple[str, str, int], list[Operation]] = defaultdict(list)
    for each in operations:
        if _SHUFFLE in each.op_name and each.source.file:
            lines[each.program, each.source.file, each.source.line].append(each)
    for (program, file, line), shuffling in lines.items():
        sorts = [each for each in shuffling if each.opcode == "sort"]
        spent = sum(each.device_ns for each in shuffling)
        gathers = [each for each in operations if each.program == program and _gathers(each)]
        source = shuffling[0].source
        is_sliced = any(
            member.primitive in _SLICES
            and (member.source.file, member.source.function) == (file, source.function)
            for each in gathers
            for member in each.members
        )
        nodes = np.flatnonzero(at_line(profile, file, line))
        if not sorts or not is_sliced or not len(nodes) or spent < _LEAST_SHARE * whole:
            continue
        times = max(min(each.executions for each in sorts), 1)
        # Executions are sampled.
        taken = [_rows(each) * max(round(each.executions / times), 1) for each in gathers]
        rows = max(_rows(each) for each in sorts)
        calls = profile.tree.nearest(exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES) > 0)
        calls = np.unique(calls[nodes][calls[nodes] != NO_NODE])
        launches = int(exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)[calls].sum())
        if launches >= _LEAST_LAUNCHES and 0 < sum(taken) <= _MOST_TAKEN * rows:
            ordered = nodes[np.argsort(-inclusive_or_zeros(profile, DEVICE_TIME_NS.name)[nodes])]
            yield _finding(profile, ordered.tolist(), spent, rows, max(taken))


def _of_functions(
    profile: Profile, operations: Sequence[Operation], whole: int
) -> Iterable[Finding]:
    """Report lines outside of `jit`: the sort and the gathers are programs of one function."""
    launches = exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)
    programs = Query(profile, launches > 0).kind(FrameKind.OPERATOR)
    shuffle = plain_name(_SHUFFLE)
    names = {int(each): plain_name(profile.frame(int(each)).name) for each in programs.nodes()}
    sorted_rows = [_rows(e) for e in operations if function_of(e.program) == shuffle and _sorts(e)]
    shuffles = np.zeros(len(profile.tree), np.bool_)
    shuffles[[node for node, name in names.items() if name == shuffle]] = True
    taken_by: dict[str, int] = defaultdict(int)
    for each in operations:
        if _gathers(each):
            name = function_of(each.program)
            taken_by[name] = max(taken_by[name], _rows(each))
    for location in source_locations.by_line(
        Query(profile, shuffles), DEVICE_TIME_NS.name, _LEAST_SHARE * whole
    ):
        nodes = np.array(location.nodes)
        times = int(launches[nodes].sum())
        if location.frame is None or times < _LEAST_LAUNCHES or not sorted_rows:
            continue
        here = source_locations.in_functions_of(profile, nodes[:1])
        taken = [
            taken_by.get(name, 0) * int(launches[node]) // times
            for node, name in names.items()
            if here[node]
        ]
        # Which of several lengths this line sorts is not recorded.
        rows = min(sorted_rows)
        if 0 < sum(taken) <= _MOST_TAKEN * rows:
            yield _finding(profile, location.nodes, location.value, rows, max(taken))


def _gathers(operation: Operation) -> bool:
    return operation.opcode == "gather" or any(m.primitive == "gather" for m in operation.members)


def _sorts(operation: Operation) -> bool:
    return operation.opcode == "sort"


def _rows(operation: Operation) -> int:
    found = _ROWS.match(operation.shape)
    return int(found[1]) if found else 1


def _finding(profile: Profile, nodes: Sequence[int], spent: int, rows: int, taken: int) -> Finding:
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    owner = int(nearest_user(profile)[nodes[0]])
    where = source_locations.location_text(profile, profile.frame(owner))
    return Finding(
        id="jax_fusion",
        severity=Severity.of_share(spent / whole),
        title=(
            f"{where} permutes {rows:,} rows by sorting random numbers to take {taken:,} of them: "
            f"{spent / whole:.0%} of the device time"
        ),
        nodes=tuple(nodes)[:8],
        evidence={
            "device_time_ns": spent,
            "time_share": spent / whole,
            "rows_count": rows,
            "taken_count": taken,
        },
        gain=source_locations.bound(
            profile, DEVICE_TIME_NS.name, spent, "drawing the indices costs nothing"
        ),
        advice=(
            "draw the indices: jax.random.randint(key, (k,), 0, n), in which a row may repeat; or permute "
            "once per epoch and let each step take the next k rows"
        ),
        misleads="no row may occur twice in one draw",
    )
