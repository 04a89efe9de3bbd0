"""Branches of which vmap computes all for every element, because a condition differs from element to element.

`jax.lax.cond` and `jax.lax.switch` then become a selection of finished results. Recognised by such a
selection in a program with two functions or more that nothing calls in it. Does not judge `jnp.where`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.analyzers.shared.jax_calls import at_line
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import DEVICE_TIME_NS, PROGRAM_LAUNCH_COUNT
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.jax import operations as jax_operations

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

    Mask = source_locations.Mask

_SELECT: Final = "select_n"
_MAPPED: Final = "vmap("
# `jnp.where` is a jitted function of its own.
_WHERE: Final = "jit(_where)"
_LEAST_SHARE: Final = 0.1
# Other functions that JAX traces by themselves have no caller either. Where the text of the line is known,
# one branch is enough, because the compiler may have fused a cheap one with the selection.
_FEWEST_BRANCHES: Final = 2
_CALLS: Final = ("cond", "switch")


def branches_under_vmap(profile: Profile) -> list[Finding]:
    """Return a finding for each line whose branches all run, where the costliest takes much time."""
    whole = source_locations.judged_total(profile, DEVICE_TIME_NS.name)
    if not whole:
        return []
    found = []
    for file, line in sorted(_selections(profile)):
        text = line_text(file, line, profile.run.start_unix_ns or None)
        selection = at_line(profile, file, line)
        branches = _branches(profile, selection)
        fewest = 1 if text else _FEWEST_BRANCHES
        if len(branches) < fewest or (text and not any(each in text for each in _CALLS)):
            continue
        name, (spent, node) = max(branches.items(), key=lambda item: item[1])
        if spent >= _LEAST_SHARE * whole:
            at = int(np.flatnonzero(selection)[0])
            where = source_locations.location_text(profile, profile.frame(at))
            others = ", ".join(f"'{each}'" for each in sorted(branches) if each != name)
            others = others or "another branch"
            found.append(
                Finding(
                    id="jax_fusion",
                    severity=Severity.of_share(spent / whole),
                    title=(
                        f"under vmap, {where} computes all branches for every element: '{name}' takes "
                        f"{spent / whole:.0%} of the device time, also for elements that take {others}"
                    ),
                    nodes=(node, at),
                    evidence={
                        "device_time_ns": spent,
                        "time_share": spent / whole,
                        "branches_count": len(branches),
                    },
                    gain=source_locations.bound(
                        profile, DEVICE_TIME_NS.name, spent, "no element needs the costliest branch"
                    ),
                    advice=(
                        "lax.cond under vmap becomes a selection of finished results: sort the elements by "
                        "branch before and give each branch its own, or use jax.lax.map in place of vmap, "
                        "which runs one branch for each element; a condition that is the same for all "
                        "stays outside of vmap (in_axes=None)"
                    ),
                    misleads="nearly all elements take the costliest branch",
                )
            )
    return found


def _selections(profile: Profile) -> set[tuple[str, int]]:
    """Return files and lines that select between results element by element."""
    found = set()
    for operation in jax_operations.operations(profile):
        if _MAPPED not in operation.op_name:
            continue
        if operation.op_name.endswith(f"/{_SELECT}") and _WHERE not in operation.op_name:
            found.add((operation.source.file, operation.source.line))
        if _WHERE not in operation.op_name:
            found.update(
                (member.source.file, member.source.line)
                for member in operation.members
                if member.primitive == _SELECT
            )
    return {each for each in found if each[0]}


def _branches(profile: Profile, selection: Mask) -> dict[str, tuple[int, int]]:
    """Return the branches that are selected from: device time with all below, and a node.

    JAX traces a branch by itself, so that its functions have no caller in the program of the selection.
    """
    tree = profile.tree
    is_python = profile.is_kind(FrameKind.PYTHON)
    is_program = exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name) > 0
    programs = tree.nearest(is_program)
    selecting = np.unique(programs[selection & (programs != NO_NODE)])
    caller = tree.nearest(is_python | is_program)
    above = np.where(tree.parent == NO_NODE, NO_NODE, caller[tree.parent])
    outermost = is_python & np.isin(above, selecting) & ~tree.at_or_above(selection)
    inclusive = tree.inclusive(exclusive_or_zeros(profile, DEVICE_TIME_NS.name))
    found: dict[str, tuple[int, int]] = {}
    for node in np.flatnonzero(outermost).tolist():
        frame = profile.frame(node)
        # Lambdas have one name.
        name = f"{frame.name} in line {frame.line}" if "<lambda>" in frame.name else frame.name
        before, known = found.get(name, (0, node))
        found[name] = (before + int(inclusive[node]), known)
    return found
