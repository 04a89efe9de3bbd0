"""The role of each process of a job: program, launcher, rank, worker of a DataLoader, engine and so on.

A process has the role of the innermost known function on its stacks, because a forked child keeps the
frames of its parents. Does not read files or compare processes.
"""

from __future__ import annotations

import itertools
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.job_ranks import ranks_of
from deepcontext.profiler.model.parents import parents_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.profiler.model.tree import Tree


class Role(Enum):
    """What a process is for; the value is the text that views show."""

    PROGRAM = "program"
    LAUNCHER = "launcher"
    FORK_SERVER = "fork server"
    RANK = "rank"
    LOADER = "DataLoader worker"
    POOL = "pool worker"
    SERVER = "server"
    ENGINE = "engine"
    WORKER = "worker"
    CHILD = "child"

    @property
    def plural(self) -> str:
        """Return the text for several processes."""
        return "children" if self is Role.CHILD else f"{self.value}s"


class _Function(NamedTuple):
    """A function that only processes of one role run."""

    role: Role
    name: str  # with its class, which begins with this text
    file: str  # a part of the path
    is_of_multiprocessing: bool = False  # a thread of another process may run the function, too


_FUNCTIONS: Final = (
    _Function(
        Role.LOADER, "_worker_loop", "torch/utils/data/_utils/worker.py", is_of_multiprocessing=True
    ),
    _Function(Role.POOL, "worker", "multiprocessing/pool.py", is_of_multiprocessing=True),
    _Function(
        Role.POOL, "_process_worker", "concurrent/futures/process.py", is_of_multiprocessing=True
    ),
    _Function(Role.POOL, "_process_worker", "loky/process_executor.py", is_of_multiprocessing=True),
    _Function(Role.POOL, "Worker.main_loop", "ray/_private/worker.py"),
    _Function(Role.ENGINE, "EngineCoreProc.run_engine_core", "vllm/v1/engine/"),
    _Function(Role.WORKER, "WorkerProc.worker_main", "vllm/v1/executor/"),
    # A child of the fork server that has no name yet.
    _Function(Role.CHILD, "_serve_one", "multiprocessing/forkserver.py"),
    _Function(Role.SERVER, "run_server", "vllm/entrypoints/"),
    _Function(Role.SERVER, "Server.run", "uvicorn/server.py"),
    _Function(Role.SERVER, "Arbiter.run", "gunicorn/arbiter.py"),
)
_MAIN_THREAD: Final = "MainThread"
_FORK_SERVER: Final = "from multiprocessing.forkserver import main"
_CHILD_STARTS: Final = "BaseProcess._bootstrap"
# For a process that ended before a sample: names that `multiprocessing`, vLLM and loky give.
_PROCESS_NAMES: Final = (
    (Role.POOL, ("ForkPoolWorker", "SpawnPoolWorker", "ForkServerPoolWorker", "LokyProcess")),
    (Role.ENGINE, ("EngineCore",)),
    (Role.WORKER, ("VllmWorker", "Worker_")),
    (Role.SERVER, ("ApiServer", "APIServer")),
)
_LAUNCHERS: Final = frozenset({
    *("torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "horovodrun"),
    *("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"),
    *("torch.distributed.elastic", "deepspeed.launcher.launch", "lightning.fabric"),
})


def roles(profiles: Sequence[Profile]) -> list[Role]:
    """Return the role of each process of a job.

    Args:
        profiles: one for each process of the job.
    """
    ranks = ranks_of(dict(enumerate(profiles)))
    parents = parents_of([each.run for each in profiles])

    def role(index: int, profile: Profile) -> Role:
        run = profile.run
        by_frames = _by_frames(profile)
        if by_frames is not None and by_frames is not Role.CHILD:
            return by_frames
        if is_launcher(run):
            return Role.LAUNCHER
        if by_frames is None and not run.process_name and _is_fork_server(run):
            return Role.FORK_SERVER
        if index in ranks:
            return Role.RANK
        if run.process_name or parents[index] is not None:
            return _by_name(run.process_name)
        return Role.PROGRAM

    return [role(index, profile) for index, profile in enumerate(profiles)]


def is_launcher(run: RunInfo) -> bool:
    """Return whether the program only starts other programs."""
    words = [PurePath(word).name for word in run.command]
    script = PurePath(run.script.removeprefix("-m ")).name
    # The program follows the interpreter's own options.
    modules = [word for before, word in itertools.pairwise(words) if before == "-m"]
    first = next((word for word in words[1:] if not word.startswith("-")), "")
    return not _LAUNCHERS.isdisjoint((script, first, *modules[:1]))


def _is_fork_server(run: RunInfo) -> bool:
    """Return whether the process is the fork server of `multiprocessing`, or a child without a name."""
    return any(word.startswith(_FORK_SERVER) for word in run.command)


def _by_frames(profile: Profile) -> Role | None:
    """Return the role of the innermost known function, if there is one.

    In a process of `multiprocessing` only functions below its start count, elsewhere only functions of
    the main thread that no thread of another program runs.
    """
    known = np.zeros(len(profile.frames), np.int64)
    starts, is_main = np.zeros((2, len(profile.frames)), np.bool_)
    for index, frame in enumerate(profile.frames):
        if frame.kind is FrameKind.PYTHON:
            known[index] = _function(frame.name, frame.file)
            starts[index] = frame.name == _CHILD_STARTS
        is_main[index] = frame.kind is FrameKind.THREAD and frame.name == _MAIN_THREAD
    tree = profile.tree
    of_node = known[tree.frame]
    level = _starts_above(tree, np.flatnonzero(starts[tree.frame]))
    if level.max(initial=0):
        is_role = (of_node > 0) & (level == level.max())
    else:
        in_threads = [n for n, each in enumerate(_FUNCTIONS, 1) if each.is_of_multiprocessing]
        is_role = (of_node > 0) & ~np.isin(of_node, in_threads)
        is_role &= tree.at_or_below(is_main[tree.frame])
    nodes = np.flatnonzero(is_role).tolist()
    if not nodes:
        return None
    innermost = max(nodes, key=lambda node: len(tree.path(node)))
    return _FUNCTIONS[int(of_node[innermost]) - 1].role


def _starts_above(tree: Tree, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Return how many of the nodes `starts` are at or above each node, shape (nodes,), int64."""
    change = np.zeros(len(tree) + 1, np.int64)
    np.add.at(change, starts, 1)
    np.add.at(change, tree.subtree_end[starts], -1)
    return np.cumsum(change[:-1])


def _function(name: str, file: str) -> int:
    """Return the number of the known function from 1, 0 for any other function."""
    for number, function in enumerate(_FUNCTIONS, 1):
        if name.startswith(function.name) and function.file in file.replace("\\", "/"):
            return number
    return 0


def _by_name(process_name: str) -> Role:
    for role, beginnings in _PROCESS_NAMES:
        if process_name.startswith(beginnings):
            return role
    return Role.CHILD
