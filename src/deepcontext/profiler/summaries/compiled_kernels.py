"""Which kernels `torch.compile` generated, what each cost, and the Python lines fused into it.

Joins the launches that the collector found in generated code with the tree. A launch is identified
by its line of generated code. Where that line is not on the call path (a replayed CUDA graph), the
launch is identified by the kernel's name, provided that no other launch has the same name. Calls of
ATen operators from generated code are not kernels of the compiler, but operators of the tree.
Invariant: a node counts for at most one launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import GPU_TIME_NS, HOST_TIME_NS
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.compiled_kernels import CompiledKernels, kernel_name
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros, total
from deepcontext.profiler.model.tree import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.compiled_kernels import KernelLaunch
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel at one of its launch sites.

    Attributes:
        name: name of the kernel, for example ``triton_poi_fused_add_0``.
        lines: lines that the kernel computes: lines of the user's code, or of libraries where no line
            is the user's (a library's model was compiled); empty if unknown.
        operators: ATen operators fused into the kernel; empty if unknown.
        is_complete: whether `lines` has all source lines of the kernel.
        time_ns: time of the kernel in the metric of `time_metric`; 0 if not measured.
        calls: number of executions; 0 if not measured.
    """

    name: str
    lines: tuple[Frame, ...]
    operators: tuple[str, ...]
    is_complete: bool
    time_ns: int
    calls: int


@dataclass(frozen=True, slots=True)
class _Kernels:
    """The launches of generated kernels, and the launch that each kernel node belongs to."""

    launches: tuple[KernelLaunch, ...]
    of_node: Mapping[int, int]


def compiled_kernels(profile: Profile) -> tuple[CompiledKernel, ...]:
    """Return the kernels, slowest first; see `time_metric`.

    Raises:
        ProfileDataError: the section is damaged, or newer than this build.
    """
    known = _kernels(profile)
    metric = time_metric(profile)
    values, counts = exclusive_or_zeros(profile, metric), counts_or_zeros(profile, metric)
    nodes_of: list[list[int]] = [[] for _ in known.launches]
    for node, index in known.of_node.items():
        nodes_of[index].append(node)
    rows = [
        _kernel(launch, int(values[nodes].sum()), int(counts[nodes].sum()))
        for launch, nodes in zip(known.launches, nodes_of, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: -row.time_ns))


def fused_at(profile: Profile, nodes: Iterable[int]) -> tuple[CompiledKernel, ...]:
    """Return the kernels that the nodes represent, each once, with times and calls of 0.

    Raises:
        ProfileDataError: the section is damaged, or newer than this build.
    """
    known = _kernels(profile)
    found = dict.fromkeys(known.of_node[node] for node in nodes if node in known.of_node)
    return tuple(_kernel(known.launches[index], 0, 0) for index in found)


def kernels_of_nodes(profile: Profile) -> tuple[tuple[CompiledKernel, ...], Mapping[int, int]]:
    """Return the kernels, with times and calls of 0, and the kernel of each node that represents one.

    Raises:
        ProfileDataError: the section is damaged, or newer than this build.
    """
    known = _kernels(profile)
    return tuple(_kernel(launch, 0, 0) for launch in known.launches), known.of_node


def time_metric(profile: Profile) -> str:
    """Return the metric of `CompiledKernel.time_ns`: GPU time where the profile has some."""
    return (GPU_TIME_NS if total(profile, GPU_TIME_NS.name) else HOST_TIME_NS).name


def _kernel(launch: KernelLaunch, time_ns: int, calls: int) -> CompiledKernel:
    user_lines = tuple(frame for frame in launch.source if is_user_file(frame.file))
    return CompiledKernel(
        name=launch.kernel,
        lines=user_lines or launch.source,
        operators=launch.operators,
        is_complete=launch.is_complete,
        time_ns=time_ns,
        calls=calls,
    )


def _kernels(profile: Profile) -> _Kernels:
    def compute() -> _Kernels:
        section = CompiledKernels.from_sections(profile.sections)
        launches = tuple(each for each in section.launches if each.is_generated)
        return _Kernels(launches, _launch_of_node(profile, launches))

    return profile.once(_kernels, compute)  # the page asks for one node at a time


def _launch_of_node(profile: Profile, launches: Sequence[KernelLaunch]) -> dict[int, int]:
    """Return the index in `launches` for each node that is a kernel of a launch."""
    if not launches:
        return {}
    by_name: dict[str, list[int]] = {}
    by_site = {}
    for number, launch in enumerate(launches):
        by_name.setdefault(launch.kernel, []).append(number)
        by_site[launch.kernel, launch.file, launch.line] = number
    tree, frames = profile.tree, profile.frames
    is_named = np.array([kernel_name(text) in by_name for text in frames.strings], np.bool_)
    is_kernel = is_named[frames.name] & np.isin(frames.kind, (FrameKind.KERNEL, FrameKind.OPERATOR))
    nodes = np.flatnonzero(is_kernel[tree.frame])
    # Not the nearest Python line, because the launch site calls Triton's launcher, itself Python.
    site = tree.nearest(_is_site(profile, by_site)[tree.frame])[nodes]
    found = {}
    for node, above in zip(nodes.tolist(), site.tolist(), strict=True):
        name = kernel_name(profile.frame(node).name)
        at = None if above == NO_NODE else profile.frame(above)
        index: int | None = None if at is None else by_site.get((name, at.file, at.line))
        if index is None and len(by_name[name]) == 1:
            (index,) = by_name[name]
        if index is not None:
            found[node] = index
    return found


def _is_site(profile: Profile, sites: Iterable[tuple[str, str, int]]) -> npt.NDArray[np.bool_]:
    """Say of each frame whether it is a line of generated code that launches a kernel."""
    frames = profile.frames
    lines = {(file, line) for _, file, line in sites}
    files = {file for file, _ in lines}
    mask = np.array([text in files for text in frames.strings], np.bool_)[frames.file]
    for index in np.flatnonzero(mask).tolist():
        frame = frames[index]
        mask[index] = (frame.file, frame.line) in lines
    return mask
