"""What a profile says about its JAX programs, as tables; nothing is formatted or printed.

Reads the tree's `device_time_ns` and the section "jax" that the collector wrote. A profile without
JAX gives empty tables. Invariant: the parts of `device_accounting` sum to the whole device time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    DEVICE_TIME_NS,
    GPU_TIME_NS,
    HOST_TIME_NS,
    PROGRAM_LAUNCH_COUNT,
)
from deepcontext.profiler.model.metric_values import (
    counts_or_zeros,
    exclusive_or_zeros,
    inclusive_or_zeros,
)
from deepcontext.profiler.model.source import is_user_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

SECTION: Final = "jax"
INSERTED: Final = "inserted by the compiler"
_WAITS: Final = ("jax: wait for the device", "jax: copy to host", "jax: copy to device")
HOST_ARGUMENTS: Final = "NumPy arguments"
_LAYOUT: Final = 1


@dataclass(frozen=True, slots=True)
class JittedFunction:
    """One jitted function over all its call sites.

    Attributes:
        name: as in the tree, ``jit(train_step)``.
        launches: executions, counted one by one.
        dispatch_ns: time in the call on the host, compilation left out.
        device_ns: time in its operations.
        phases: `device_ns` by phase.
        compilations: how often it was compiled.
        compile_ns: time spent on that: tracing, lowering, compiling.
    """

    name: str
    launches: int
    dispatch_ns: int
    device_ns: int
    phases: dict[Phase, int]
    compilations: int
    compile_ns: int


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the program; `file` is "" where the compiler kept none."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Recompilation:
    """A function that was compiled again, and why.

    Attributes:
        function: name of the jitted function.
        reason: "arguments", "new object", "cache" or "unknown".
        changes: what differs, one sentence each.
        path: Python frames of the call that needed the program, outermost first.
        count: compilations for this reason from this path.
        spent_ns: time they took.
        is_of_user: the function is defined in the user's own code, not by jax or another library.
    """

    function: str
    reason: str
    changes: tuple[str, ...]
    path: tuple[Source, ...]
    count: int
    spent_ns: int
    is_of_user: bool


@dataclass(frozen=True, slots=True)
class Transfer:
    """A line that waits for the device or copies.

    Attributes:
        what: "wait for the device", "copy to host", "copy to device" or "NumPy arguments": copied by
            the jitted call that they are given to.
        source: innermost line of the user's own code.
        count: how often.
        host_ns: time the host spent in it; 0 for NumPy arguments, whose copies are part of the call.
        bytes: copied, 0 for waits.
    """

    what: str
    source: Source
    count: int
    host_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DeviceAccounting:
    """Where the device time was found, in ns.

    Attributes:
        total: all of it.
        on_user_line: under a line of the user's own code that was traced into the program.
        inserted: of `on_user_line`, operations that the compiler inserted, under the line of the
            operation they serve.
        below_call_only: under the jitted call, without a line inside the program.
        phases: by phase.
    """

    total: int = 0
    on_user_line: int = 0
    inserted: int = 0
    below_call_only: int = 0
    phases: dict[Phase, int] = field(default_factory=dict)


def section(profile: Profile) -> dict[str, Any] | None:
    """Return the collector's payload, or None for a profile without JAX.

    Raises:
        ProfileDataError: the payload is damaged or newer than this build.
    """
    payload = profile.sections.get(SECTION)
    if payload is None:
        return None
    try:
        content = json.loads(payload)
        version = content["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ProfileDataError(f"section '{SECTION}' is not what a collector writes") from error
    if version != _LAYOUT:
        raise ProfileDataError(
            f"section '{SECTION}' has layout {version}, this build reads {_LAYOUT}; "
            "upgrade deepcontext"
        )
    return dict(content)


def device_metric(profile: Profile) -> str:
    """Return the metric of time inside compiled programs: the GPU's where they ran on one."""
    has_kernels = GPU_TIME_NS.name in profile.metrics and any(
        profile.inclusive(GPU_TIME_NS.name)[node] for node in _jit_nodes(profile)
    )
    return GPU_TIME_NS.name if has_kernels else DEVICE_TIME_NS.name


def device_accounting(profile: Profile) -> DeviceAccounting:
    """Say under what the device time was found; work of a GPU that jax did not launch is no part."""
    metric = device_metric(profile)
    if metric not in profile.metrics:
        return DeviceAccounting()
    is_jax = np.zeros(len(profile.tree), np.bool_)
    is_jax[list(_jit_nodes(profile))] = True
    exclusive = np.where(profile.tree.at_or_below(is_jax), profile.exclusive(metric), 0)
    is_traced = _below_user_line(profile)
    is_inserted = _below(profile, FrameKind.MARKER, INSERTED)
    phases = {
        phase: int(exclusive[profile.tree.phase == phase].sum())
        for phase in Phase
        if exclusive[profile.tree.phase == phase].any()
    }
    return DeviceAccounting(
        total=int(exclusive.sum()),
        on_user_line=int(exclusive[is_traced].sum()),
        inserted=int(exclusive[is_traced & is_inserted].sum()),
        below_call_only=int(exclusive[~is_traced].sum()),
        phases=phases,
    )


def jitted_functions(profile: Profile) -> tuple[JittedFunction, ...]:
    """List jitted functions, those with the most device time first."""
    compiled = {f"jit({f['function']})": f for f in (section(profile) or {}).get("functions", ())}
    nodes_of: dict[str, list[int]] = {}
    for node in _jit_nodes(profile):
        nodes_of.setdefault(profile.frame(node).name, []).append(node)
    device = inclusive_or_zeros(profile, device_metric(profile))
    launches, host = (
        exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name),
        exclusive_or_zeros(profile, HOST_TIME_NS.name),
    )
    exclusive = exclusive_or_zeros(profile, device_metric(profile))
    functions = []
    for name, nodes in nodes_of.items():
        phases: dict[Phase, int] = {}
        for node in nodes:
            below = slice(node, int(profile.tree.subtree_end[node]))
            sums = np.bincount(profile.tree.phase[below], exclusive[below], len(Phase))
            for phase in Phase:
                if sums[phase]:
                    phases[phase] = phases.get(phase, 0) + int(sums[phase])
        known = compiled.get(name, {})
        functions.append(
            JittedFunction(
                name=name,
                launches=int(launches[nodes].sum()),
                dispatch_ns=int(host[nodes].sum()),
                device_ns=int(device[nodes].sum()),
                phases=phases,
                compilations=int(known.get("compilations", 0)),
                compile_ns=int(known.get("compile_ns", 0)),
            )
        )
    return tuple(sorted(functions, key=lambda f: (-f.device_ns, -f.dispatch_ns, f.name)))


def recompilations(profile: Profile) -> tuple[Recompilation, ...]:
    """List why functions were compiled more than once, largest first."""
    groups: dict[tuple[str, str, tuple[str, ...], tuple[Source, ...], bool], list[int]] = {}
    for record in (section(profile) or {}).get("compilations", ()):
        if record["reason"] == "first":
            continue
        path = tuple(Source(*line) for line in record["path"])
        file = record.get("file", "")
        is_of_user = not file or is_user_file(file)
        key = (record["function"], record["reason"], tuple(record["changes"]), path, is_of_user)
        spent = record["trace_ns"] + record["lower_ns"] + record["compile_ns"]
        groups.setdefault(key, []).append(spent)
    rows = [
        Recompilation(function, reason, changes, path, len(spent), sum(spent), is_of_user)
        for (function, reason, changes, path, is_of_user), spent in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.spent_ns))


def transfers(profile: Profile) -> tuple[Transfer, ...]:
    """List waits and copies by line, those that hold the host up longest first."""
    rows: dict[tuple[str, Source], list[int]] = {}
    host, moved = (
        inclusive_or_zeros(profile, HOST_TIME_NS.name),
        exclusive_or_zeros(profile, "transfer_bytes"),
    )
    counts = (
        profile.counts(CALL_DURATION_NS.name) if CALL_DURATION_NS.name in profile.metrics else host
    )
    for name in _WAITS:
        for node in np.flatnonzero(_is_frame(profile, None, name)):
            if not counts[node]:
                continue  # it only stands for arrays that were made there
            sums = rows.setdefault(
                (name.removeprefix("jax: "), _user_line(profile, int(node))), [0, 0, 0]
            )
            for place, column in enumerate((counts, host, moved)):
                sums[place] += int(column[node])
    copied = counts_or_zeros(profile, "transfer_bytes")
    for call in _jit_nodes(profile):
        if moved[call]:
            sums = rows.setdefault((HOST_ARGUMENTS, _user_line(profile, call)), [0, 0, 0])
            sums[0] += int(copied[call])
            sums[2] += int(moved[call])
    listed = [Transfer(what, source, *sums) for (what, source), sums in rows.items()]
    return tuple(sorted(listed, key=lambda row: -row.host_ns))


def _jit_nodes(profile: Profile) -> Iterator[int]:
    for node in np.flatnonzero(profile.is_kind(FrameKind.OPERATOR)):
        if profile.frame(int(node)).name.startswith("jit("):
            yield int(node)


def _is_frame(profile: Profile, kind: FrameKind | None, name: str) -> npt.NDArray[np.bool_]:
    """Say of each node whether its frame has this name, shape (nodes,)."""
    frames = profile.frames
    wanted = np.array([text == name for text in frames.strings], np.bool_)[frames.name]
    if kind is not None:
        wanted &= frames.kind == kind
    return np.asarray(wanted[profile.tree.frame], np.bool_)


def _below(profile: Profile, kind: FrameKind, name: str) -> npt.NDArray[np.bool_]:
    """Say of each node whether it or a node above has this frame, shape (nodes,)."""
    return profile.tree.at_or_below(_is_frame(profile, kind, name))


def _below_user_line(profile: Profile) -> npt.NDArray[np.bool_]:
    """Say of each node whether a line of the user's own lies between it and its jitted call."""
    tree = profile.tree
    jit = np.zeros(len(tree), np.bool_)
    jit[list(_jit_nodes(profile))] = True
    is_line = profile.frames.is_user_code()[tree.frame]
    return tree.at_or_below(tree.at_or_below(jit) & is_line)


def _user_line(profile: Profile, node: int) -> Source:
    for frame in reversed(profile.path(int(node))):
        if frame.kind is FrameKind.PYTHON and is_user_file(frame.file):
            return Source(frame.name, frame.file, frame.line)
    return Source("", "", 0)
