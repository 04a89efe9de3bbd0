"""Work of Python and of libraries between operators, in each step: at which line, and how much.

Loops over small operators are `kernel_fusion`'s, data loading is `data_loading`'s, and time in
frameworks (calling modules, starting a backward pass) is no line's to change. Needs samples, and steps or
a loop over operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.finding import Finding, Gain, Severity
from deepcontext.analyzers.shared import naive_einsum, source_locations
from deepcontext.analyzers.shared.called_operators import functions_of_nodes, model_calls
from deepcontext.analyzers.shared.garbage import collections
from deepcontext.analyzers.shared.jax_launches import in_small_launches
from deepcontext.analyzers.shared.jax_lists import arrays_of_lists
from deepcontext.analyzers.shared.operator_names import READS_VALUE
from deepcontext.analyzers.shared.polling import polling
from deepcontext.analyzers.shared.repeated_lines import (
    grows,
    has_operator_clock,
    has_steps,
    repeated,
)
from deepcontext.analyzers.shared.saved_views import saved_views
from deepcontext.analyzers.shared.watched_values import watched_values
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import (
    CALL_DURATION_NS,
    GC_TIME_NS,
    HOST_TIME_NS,
    SAMPLED_CPU_TIME_NS,
    SAMPLED_READY_TIME_NS,
    SAMPLED_WAIT_TIME_NS,
)
from deepcontext.profiler.model.grouping import sums
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.package import Origin, package_of
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries import time_between_operators
from deepcontext.profiler.summaries.setup_time import importing, setup_time
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_GC: Final = GC_TIME_NS.name
_LEAST_SHARE: Final = 0.15
# Fewer than ten samples at the usual rate say little about a share.
_LEAST_NS: Final = 100_000_000
# In a program without steps; with less, operators are not what the program is about.
_LEAST_OPERATORS: Final = 0.2
# What a program calls a model for again and again is what it is about, however little the model takes.
_FEWEST_MODEL_CALLS: Final = 32
# Of the collections, for a function that makes the objects.
_MOST: Final = 0.8
# The work of such a function against the collections in it: a call of gc.collect() has no such work.
_MUCH_MORE: Final = 2
# Calling an operator takes Python and PyTorch a few microseconds; work takes much longer.
_MOST_CALLING_NS: Final = 50_000
# Parts of PyTorch's own files that do what the program asks for, by the end of their path.
_SAVING: Final = "torch/serialization.py"
# A framework whose functions do what their caller asks for: told where this can be cheaper.
_ARRAYS: Final = "numpy"
# Methods of tensors that make texts: dozens of small operators and Python between them.
_PRINTING: Final = frozenset({"Tensor.__format__", "Tensor.__repr__"})
_LOGGING: Final = ("torch/utils/tensorboard/", "/tensorboardX/", "/wandb/", "/mlflow/", "/logging/")
# Source: torch/csrc/utils/tensor_list.cpp: `tolist` resolves views of conjugates and negatives.
_READS: Final = READS_VALUE | {"aten::resolve_conj", "aten::resolve_neg"}
# Flatten the arguments of a jitted function in Python, in each call.
_FLATTENING: Final = frozenset({"jax", "flax", "haiku", "dm_haiku", "equinox", "optax"})
_WRITING: Final = frozenset({"json", "pickle", "csv", "yaml", "pathlib", "zipfile", "shutil"})


@dataclass(frozen=True, slots=True)
class _Work:
    """Time of one function of the user's between operators.

    Attributes:
        frame: its line with most of the time.
        nodes: nodes with the time, those with most first.
        value: ns.
        library: what most of the time runs in: a file, or "" for the program itself.
        loads: whether most of the time reads what `torch.save` wrote.
        prints: whether most of the time makes texts of tensors.
        operators: operators that the line itself calls, as `torch.tensor(list)` does.
        reads: those among them that read values, as `tensor.tolist()` does.
        launches: launches of JAX's programs by the line.
        grows: whether it takes more time from step to step.
        is_einsum: whether most of the time is in calls of NumPy's einsum without a path.
    """

    frame: Frame
    nodes: tuple[int, ...]
    value: int
    library: str
    loads: bool
    prints: bool
    operators: int
    reads: int
    launches: int
    grows: bool
    is_einsum: bool

    @property
    def has_advice(self) -> bool:
        """Whether there is more to say than that the program computes with arrays."""
        return package_of(self.library).name != _ARRAYS or self.grows or self.is_einsum


def _find(profile: Profile) -> list[Finding]:
    setup = setup_time(profile)
    if setup is None or setup.working_ns <= 0:
        return []
    whole = setup.working_ns
    collected = collections(profile, whole)
    asking = polling(profile, whole)
    saving = saved_views(profile, whole)
    always = [*arrays_of_lists(profile), *asking, *watched_values(profile), *saving]
    if not has_steps(profile) and not _loops_over_operators(profile, whole):
        return [*collected, *always]
    steps = step_count(profile) if has_steps(profile) else 0
    least = max(_LEAST_SHARE * whole, _LEAST_NS)
    # Where collections have a finding of their own, their time is no other line's.
    nothing = np.zeros(len(profile.tree), np.int64)
    work = _work(profile, least, exclusive_or_zeros(profile, _GC) if collected else nothing)
    if collected and _is_cause(profile, work, collected[0]):
        collected = []
        work = _work(profile, least, nothing)
    told = source_locations.of_same_functions(profile, [*asking, *saving])
    work = [each for each in work if not told[each.nodes[0]] and each.has_advice]
    return [*collected, *always, *(_finding(profile, each, whole, steps) for each in work)]


def _is_cause(profile: Profile, work: list[_Work], collected: Finding) -> bool:
    """Return whether the work of one function makes the objects that are collected."""
    pauses = exclusive_or_zeros(profile, _GC)
    spent = int(pauses.sum())
    for each in work:
        own = pauses[source_locations.in_functions_of(profile, np.array(each.nodes[:1]))].sum()
        is_maker = own >= _MOST * spent and each.value >= _MUCH_MORE * own
        if is_maker and set(collected.nodes) & set(each.nodes):
            return True
    return False


def _loops_over_operators(profile: Profile, whole: int) -> bool:
    """Return whether operators are what a program without steps does, again and again."""
    if not has_operator_clock(profile):
        return False
    spent = source_locations.judged_total(profile, HOST_TIME_NS.name)
    return spent >= _LEAST_OPERATORS * whole or model_calls(profile) >= _FEWEST_MODEL_CALLS


def _work(profile: Profile, least: float, counted: Ints) -> list[_Work]:
    """Return the functions whose lines work between operators for at least `least` ns.

    Args:
        profile: the profile.
        least: functions with less time are left out, ns.
        counted: time of each node that another finding counts, ns, shape (nodes,).
    """
    tree, frames = profile.tree, profile.frames
    is_user = frames.is_user_code()
    entry = _entries(profile, is_user)
    values = np.where(_is_judged(profile, is_user, entry), _time(profile, entry, counted), 0)
    nodes = np.flatnonzero(values)
    owner = tree.nearest(is_user[tree.frame])
    nodes = nodes[owner[nodes] != NO_NODE]
    if not len(nodes):
        return []
    source_line = frames.source_line()[tree.frame[owner]]
    lines, of_node = np.unique(source_line[nodes], return_inverse=True)
    calls, reads = _calls_of_lines(profile, source_line, owner, lines)
    time = sums(of_node, values[nodes], len(lines))
    prints = np.array([_prints(profile, each) for each in range(len(frames))], np.bool_)
    is_work = (time > _MOST_CALLING_NS * calls)[of_node] | prints[tree.frame[entry[nodes]]]
    nodes = nodes[is_work]
    # A comprehension or a lambda is a part of the function around it.
    _, of_function = np.unique(functions_of_nodes(profile)[nodes], return_inverse=True)
    found = []
    for number in range(int(of_function.max(initial=-1)) + 1):
        members = nodes[of_function == number]
        value = int(values[members].sum())
        if value < least:
            continue
        members = members[np.argsort(-values[members], kind="stable")]
        costliest = _costliest_line(source_line, members, values)
        top = int(owner[costliest[0]])
        called = int(entry[costliest[0]])
        library = profile.frame(called).file if called != top else ""
        is_line = lines == source_line[costliest[0]]
        ids = tuple(costliest.tolist())
        is_print = _prints(profile, int(tree.frame[called]))
        loads = library.endswith(_SAVING) and profile.frame(called).name == "load"
        found.append(
            _Work(
                frame=profile.frame(top),
                nodes=ids,
                value=value,
                library=library,
                loads=loads,
                prints=is_print,
                operators=int(calls[is_line].sum()),
                reads=int(reads[is_line].sum()),
                launches=_launches(profile, source_line == source_line[costliest[0]]),
                grows=grows(profile, costliest),
                is_einsum=naive_einsum.is_naive_einsum(profile, ids),
            )
        )
    return sorted(found, key=lambda work: -work.value)


def _entries(profile: Profile, is_user: Mask) -> Ints:
    """Return the frame of a library that the user's code called, or the user's frame, above each node."""
    tree = profile.tree
    of_user = is_user[tree.frame]
    is_frame = profile.is_kind(FrameKind.PYTHON, FrameKind.MODULE)
    nearest = tree.nearest(is_frame)
    above = np.where(tree.parent == NO_NODE, NO_NODE, nearest[tree.parent])
    is_entered = is_frame & ~of_user & (above != NO_NODE) & of_user[above]
    return tree.nearest(is_entered | of_user)


def _is_judged(profile: Profile, is_user: Mask, entry: Ints) -> Mask:
    """Return which nodes work repeatedly between operators, on a main thread."""
    tree, frames = profile.tree, profile.frames
    is_framework = np.array([_is_framework(profile, each) for each in range(len(frames))], np.bool_)
    left_out = source_locations.compiling(profile).mask()
    left_out |= source_locations.scopes(profile, source_locations.LOADER_SCOPE).mask()
    left_out |= source_locations.nodes_named(
        profile, FrameKind.SCOPE, lambda name: name.startswith("Optimizer.step#")
    ).mask()
    left_out |= in_small_launches(profile)
    return np.asarray(
        repeated(profile, is_user)
        & profile.is_kind(FrameKind.PYTHON, FrameKind.NATIVE)  # not inside an operator or a wait
        & time_between_operators.on_main_threads(profile)
        & (entry != NO_NODE)
        & ~is_framework[tree.frame[entry]]
        & ~importing(profile)
        & ~tree.at_or_below(left_out)
        & (tree.phase != Phase.OPTIMIZER)
    )


def _is_framework(profile: Profile, frame: int) -> bool:
    """Return whether a frame is a framework's, whose time no line of the program explains."""
    frames = profile.frames
    if frames.kind[frame] == FrameKind.MODULE:
        return True
    file = frames.strings[int(frames.file[frame])]
    if _prints(profile, frame):
        return False
    does_as_asked = file.endswith(_SAVING) or any(part in file for part in _LOGGING)
    package = package_of(file)
    does_as_asked |= package.name == _ARRAYS
    return not does_as_asked and package.origin in {Origin.FRAMEWORK, Origin.GENERATED}


def _prints(profile: Profile, frame: int) -> bool:
    frames = profile.frames
    return frames.strings[int(frames.name[frame])] in _PRINTING


def _time(profile: Profile, entry: Ints, counted: Ints) -> Ints:
    """Return the time between operators of each node, ns; with waits where a library writes."""
    # A thread that has no processor works, too: on a quieter machine it would run.
    ready = exclusive_or_zeros(profile, SAMPLED_READY_TIME_NS.name)
    working = exclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name) + ready
    waiting = exclusive_or_zeros(profile, SAMPLED_WAIT_TIME_NS.name) - ready
    working = np.maximum(working - counted, 0)
    frames = profile.frames
    writes = np.array([_writes(frames.strings[int(file)]) for file in frames.file], np.bool_)
    spent: Ints = working + np.where(writes[profile.tree.frame[entry]], waiting, 0)
    return spent


def _writes(file: str) -> bool:
    if file.endswith(_SAVING) or any(part in file for part in _LOGGING):
        return True
    return package_of(file).name in _WRITING


def _calls_of_lines(
    profile: Profile, source_line: Ints, owner: Ints, lines: Ints
) -> tuple[Ints, Ints]:
    """Return how many operators each line calls itself, and how many of them read values.

    The backward is left out.

    Returns:
        two arrays of shape (lines,).
    """
    tree = profile.tree
    operators = source_locations.outermost(
        source_locations.nodes_named(profile, FrameKind.OPERATOR, lambda _: True)
    ).mask()
    operators &= (tree.phase != Phase.BACKWARD) & (owner != NO_NODE)
    nodes = np.flatnonzero(operators & np.isin(source_line, lines))
    calls = counts_or_zeros(profile, CALL_DURATION_NS.name)[nodes]
    line = np.searchsorted(lines, source_line[nodes])
    reads = source_locations.operators(profile, _READS).mask()[nodes]
    return sums(line, calls, len(lines)), sums(line, np.where(reads, calls, 0), len(lines))


def _launches(profile: Profile, of_line: Mask) -> int:
    """Return how many of JAX's programs the nodes of a line launch."""
    return int(exclusive_or_zeros(profile, source_locations.JAX_LAUNCHES)[of_line].sum())


def _costliest_line(source_line: Ints, nodes: Ints, values: Ints) -> Ints:
    """Return the nodes of the line with most time, the costliest first."""
    lines, of_node = np.unique(source_line[nodes], return_inverse=True)
    costliest = int(np.argmax(sums(of_node, values[nodes], len(lines))))
    members: Ints = nodes[of_node == costliest]
    return members


def _finding(profile: Profile, work: _Work, whole: int, steps: int) -> Finding:
    share = min(work.value / whole, 1.0)
    where = source_locations.location_text(profile, work.frame)
    what, advice = _advice(work)
    growing = ", and more from step to step" if work.grows else ""
    return Finding(
        id="host_work",
        severity=Severity.of_share(share),
        title=f"{what} at {where} takes {share:.0%} of the time, between operators{growing}",
        nodes=work.nodes[:8],
        evidence={
            "host_work_ns": work.value,
            "host_work_share": share,
            **({"ns_per_step": work.value // steps} if steps else {}),
            **({"package": package_of(work.library).name} if work.library else {}),
        },
        gain=Gain(
            metric="elapsed time",
            upper_bound=work.value,
            upper_bound_share=share,
            assumption="the work is done elsewhere, once, or not at all",
        ),
        advice=advice,
        misleads=(
            naive_einsum.MISLEADS
            if work.is_einsum
            else "the work is needed in each step and cannot be prepared"
        ),
    )


def _advice(work: _Work) -> tuple[str, str]:
    if work.library.endswith(_SAVING):
        return _file_advice(work)
    if work.prints:
        return "making texts of tensors", (
            "do not print or format tensors in each step: logging takes them as arguments "
            "(logger.debug('%s', tensor)) and makes no text below its level; print a sum or a mean, once "
            "in many steps"
        )
    if _writes(work.library):
        return "reading or writing", (
            "do it once in many steps, collect what is to be written, and append instead of rewriting "
            "the whole file"
        )
    package = package_of(work.library).name if work.library else ""
    if work.launches and (not package or package in _FLATTENING):
        return "Python around a call of JAX", (
            "each call flattens its arguments again: split modules and states before the loop "
            "(nnx.split, equinox.partition) and give the jitted function their arrays, or put several "
            "steps into one call (jax.lax.scan)"
        )
    if package or work.grows:
        return _library_advice(work, package)
    return _own_advice(work)


def _library_advice(work: _Work, package: str) -> tuple[str, str]:
    """Return what a line does with a library, or with all values so far, and what to do."""
    if work.is_einsum:
        return "einsum of 'numpy' without a path", naive_einsum.ADVICE
    what = f"work of '{package}'" if package else "Python"
    if work.grows:
        return what, (
            "it works on more values in each step: keep running values (sum and count, largest value, a dict "
            "by key) in place of computing over all past values, or compute once in many steps"
        )
    return what, (
        "prepare its results before the loop, or in the workers of a DataLoader (num_workers), which run "
        "beside the step"
    )


def _own_advice(work: _Work) -> tuple[str, str]:
    """Return what the program's own Python does, and what to do."""
    if work.operators:
        return _advice_on_operators(work)
    return "Python", (
        "prepare it before the loop or in the workers of a DataLoader (num_workers), which run beside "
        "the step; or compute on whole arrays (NumPy, torch) instead of element by element"
    )


def _file_advice(work: _Work) -> tuple[str, str]:
    """Return what a line does with files of `torch.save`, and what to do."""
    if work.loads:
        return "reading a model or tensors from a file", (
            "build the model and load its file once, before the loop or at the start of the server, and "
            "keep it; torch.load(..., mmap=True) reads what is used"
        )
    return "saving", (
        "save once in many steps; copy the tensors and write them in another thread "
        "(torch.distributed.checkpoint.async_save)"
    )


def _advice_on_operators(work: _Work) -> tuple[str, str]:
    if work.reads == work.operators:
        return "Python on values of tensors", (
            "compute with operators on the whole tensor (softmax, sort, topk, cumsum, torch.multinomial), "
            "and read only the result"
        )
    return "making tensors from Python's objects", (
        "make the tensor once before the loop (register_buffer), or from a NumPy array "
        "(torch.from_numpy), which is copied as a whole"
    )


ANALYZER = Analyzer("host_work", "does Python work between operators in each step?", _find)
