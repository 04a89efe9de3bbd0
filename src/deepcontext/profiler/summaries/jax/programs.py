"""Summaries of the JAX programs in a profile; nothing is formatted or printed.

Reads the tree's `device_time_ns` and the section "jax" that the collector wrote. A profile without
JAX gives empty tables. Invariant: the parts of `device_accounting` add up to the whole device time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
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
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.metric_values import (
    counts_or_zeros,
    exclusive_or_zeros,
    inclusive_or_zeros,
)
from deepcontext.profiler.model.place import Place
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

SECTION: Final = "jax"
INSERTED: Final = "inserted by the compiler"
_WAITS: Final = ("jax: wait for the device", "jax: copy to host", "jax: copy to device")
HOST_ARGUMENTS: Final = "NumPy arguments"
_LAYOUT: Final = 1


@dataclass(frozen=True, slots=True)
class JittedFunction:
    """One jitted function, summed over all call sites.

    Attributes:
        name: as in the tree, ``jit(train_step)``.
        launches: number of executions.
        dispatch_ns: host time in the call, without compilation.
        device_ns: time in the function's operations.
        phases: `device_ns` by phase.
        compilations: number of compilations.
        compile_ns: time spent on tracing, lowering and compiling.
    """

    name: str
    launches: int
    dispatch_ns: int
    device_ns: int
    phases: dict[Phase, int]
    compilations: int
    compile_ns: int


@dataclass(frozen=True, slots=True)
class Recompilation:
    """A function that was compiled again, and the reason.

    Attributes:
        function: name of the jitted function.
        reason: "arguments", "new object", "cache" or "unknown".
        changes: one sentence for each difference.
        path: Python frames of the call that triggered the compilation, outermost first.
        count: compilations for this reason from this path.
        spent_ns: time of these compilations.
        is_of_user: the function is defined in the user's code, not by jax or another library.
    """

    function: str
    reason: str
    changes: tuple[str, ...]
    path: tuple[Place, ...]
    count: int
    spent_ns: int
    is_of_user: bool


@dataclass(frozen=True, slots=True)
class Transfer:
    """A line that waits for the device or copies.

    Attributes:
        what: "wait for the device", "copy to host", "copy to device" or "NumPy arguments" (copied by
            the jitted call that receives the arguments).
        source: innermost line of the user's code.
        count: number of waits or copies.
        host_ns: host time spent; 0 for NumPy arguments, because the call includes their copies.
        bytes: bytes copied; 0 for waits.
    """

    what: str
    source: Place
    count: int
    host_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DeviceAccounting:
    """How far device time could be attributed, in ns.

    Attributes:
        total: whole device time.
        on_user_line: time under a line of the user's code, as in the table of lines.
        inserted: part of `on_user_line` in operations that the compiler inserted, attributed to the
            line of the operation they serve.
        at_call: part of `on_user_line` whose only line is that of the jitted call.
        nowhere: time under no line of the user's code.
        phases: `total` by phase.
    """

    total: int = 0
    on_user_line: int = 0
    inserted: int = 0
    at_call: int = 0
    nowhere: int = 0
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
    return _of_part(profile, content) if profile.whole else dict(content)


def _of_part(profile: Profile, content: dict[str, Any]) -> dict[str, Any]:
    """Divide times of operations, which were sampled over the run, by the launches in a part of it."""
    assert profile.whole is not None  # noqa: S101  for the type checker
    here, in_run = _launches(profile), _launches(profile.whole)
    names = {each["uid"]: plain_name(each["module"]) for each in content.get("programs", ())}
    shares = {uid: here[name] / in_run[name] for uid, name in names.items() if in_run[name]}
    content = dict(content)
    for rows in ("times", "callbacks"):
        content[rows] = [
            (uid, index, max(round(count * shares[uid]), 1), round(spent_ns * shares[uid]))
            for uid, index, count, spent_ns in content.get(rows, ())
            if shares.get(uid)
        ]
    return content


def _launches(profile: Profile) -> Counter[str]:
    found: Counter[str] = Counter()
    launches = exclusive_or_zeros(profile, PROGRAM_LAUNCH_COUNT.name)
    for node in _jit_nodes(profile):
        found[plain_name(profile.frame(node).name)] += int(launches[node])
    return found


def plain_name(name: str) -> str:
    """Return one name for ``jit(step)`` and the compiler's equivalent, ``jit_step``."""
    return re.sub(r"[\W_]", "", name)


def checks(profile: Profile) -> tuple[str, ...]:
    """Return JAX's names of the modes for the search for errors that were on at the end of the run.

    Empty for profiles from before this was recorded.
    """
    return tuple(map(str, (section(profile) or {}).get("checks", ())))


def device_metric(profile: Profile) -> str:
    """Return the metric of time inside compiled programs: GPU time where they ran on a GPU."""
    has_kernels = GPU_TIME_NS.name in profile.metrics and any(
        profile.inclusive(GPU_TIME_NS.name)[node] for node in _jit_nodes(profile)
    )
    return GPU_TIME_NS.name if has_kernels else DEVICE_TIME_NS.name


def device_accounting(profile: Profile) -> DeviceAccounting:
    """Return how far device time could be attributed, without GPU work that jax did not launch."""
    metric = device_metric(profile)
    if metric not in profile.metrics:
        return DeviceAccounting()
    is_jax = np.zeros(len(profile.tree), np.bool_)
    is_jax[_jit_nodes(profile)] = True
    exclusive = np.where(profile.tree.at_or_below(is_jax), profile.exclusive(metric), 0)
    is_on_line = nearest_user(profile) != NO_NODE
    is_traced = _below_user_line(profile)
    is_inserted = _below(profile, FrameKind.MARKER, INSERTED)
    phases = {
        phase: int(exclusive[profile.tree.phase == phase].sum())
        for phase in Phase
        if exclusive[profile.tree.phase == phase].any()
    }
    return DeviceAccounting(
        total=int(exclusive.sum()),
        on_user_line=int(exclusive[is_on_line].sum()),
        inserted=int(exclusive[is_on_line & is_inserted].sum()),
        at_call=int(exclusive[is_on_line & ~is_traced].sum()),
        nowhere=int(exclusive[~is_on_line].sum()),
        phases=phases,
    )


def jitted_functions(profile: Profile) -> tuple[JittedFunction, ...]:
    """List jitted functions, largest device time first."""
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
        outermost = _outermost(profile, nodes)
        for node in outermost:
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
                device_ns=int(device[outermost].sum()),
                phases=phases,
                compilations=int(known.get("compilations", 0)),
                compile_ns=int(known.get("compile_ns", 0)),
            )
        )
    return tuple(sorted(functions, key=lambda f: (-f.device_ns, -f.dispatch_ns, f.name)))


def _outermost(profile: Profile, nodes: list[int]) -> list[int]:
    """Leave out nodes below other ones: XLA's ranges name a program once more below its call."""
    found: list[int] = []
    end = 0
    for node in nodes:
        if node >= end:
            found.append(node)
            end = int(profile.tree.subtree_end[node])
    return found


def recompilations(profile: Profile) -> tuple[Recompilation, ...]:
    """List the reasons for repeated compilations, largest time first."""
    groups: dict[tuple[str, str, tuple[str, ...], tuple[Place, ...], bool], list[int]] = {}
    for record in (section(profile) or {}).get("compilations", ()):
        if record["reason"] == "first":
            continue
        path = tuple(Place(*line) for line in record["path"])
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
    """List waits and copies by line, largest host time first."""
    rows: dict[tuple[str, Place], list[int]] = {}
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
                continue  # the node only represents arrays that were created there
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


def _jit_nodes(profile: Profile) -> list[int]:
    return profile.once(_jit_nodes, lambda: _find_jit_nodes(profile))


def _find_jit_nodes(profile: Profile) -> list[int]:
    frames = profile.frames
    names = np.array([text.startswith("jit(") for text in frames.strings], np.bool_)
    is_jit = (frames.kind == FrameKind.OPERATOR) & names[frames.name]
    return np.flatnonzero(is_jit[profile.tree.frame]).tolist()


def _is_frame(profile: Profile, kind: FrameKind | None, name: str) -> npt.NDArray[np.bool_]:
    """Return for each node whether its frame has this name, shape (nodes,)."""
    frames = profile.frames
    wanted = np.array([text == name for text in frames.strings], np.bool_)[frames.name]
    if kind is not None:
        wanted &= frames.kind == kind
    return np.asarray(wanted[profile.tree.frame], np.bool_)


def _below(profile: Profile, kind: FrameKind, name: str) -> npt.NDArray[np.bool_]:
    """Return for each node whether the node or an ancestor has this frame, shape (nodes,)."""
    return profile.tree.at_or_below(_is_frame(profile, kind, name))


def _below_user_line(profile: Profile) -> npt.NDArray[np.bool_]:
    """Return for each node whether a line of the user's code is between the node and its jitted call."""
    tree = profile.tree
    jit = np.zeros(len(tree), np.bool_)
    jit[_jit_nodes(profile)] = True
    is_line = profile.is_user_code()[tree.frame]
    return tree.at_or_below(tree.at_or_below(jit) & is_line)


def _user_line(profile: Profile, node: int) -> Place:
    for frame in reversed(profile.path(int(node))):
        if frame.kind is FrameKind.PYTHON and is_user_file(frame.file):
            return Place.at(frame)
    return Place("", "", 0)
