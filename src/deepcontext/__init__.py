"""deepcontext: one bounded calling context tree through every layer of a deep-learning program.

    import deepcontext

    with deepcontext.profile("out.dcprof") as session:
        for batch in loader:
            train_step(batch)
            session.step()

    profile = deepcontext.Profile.load("out.dcprof")
    print(profile.query().kind("operator").phase("backward").total("host_time_ns"))

Importing this package imports no framework, no numpy and no user interface: it runs inside the
program under test. The native core is loaded when it is first needed, so that `deepcontext doctor`
can say why it cannot be.
"""

from __future__ import annotations

import functools
import inspect
import os
from typing import TYPE_CHECKING, Any, TypeVar, overload

from deepcontext import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.recording.part import ProfiledPart
    from deepcontext.profiler.recording.scope import Scope
    from deepcontext.profiler.recording.session import Session, SessionManager

    __version__: str
    _MANAGER: SessionManager

_Function = TypeVar("_Function", bound="Callable[..., Any]")

__all__ = [
    "Profile",
    "Session",
    "__version__",
    "errors",
    "profile",
    "scope",
    "start",
    "step",
    "stop",
]


@functools.cache
def _manager() -> SessionManager:
    from deepcontext.profiler.recording.session import SessionManager  # noqa: PLC0415  the native core

    return SessionManager()


def start(  # noqa: PLR0913  settings by keyword
    path: str | os.PathLike[str] | None = None,
    *,
    shapes: bool = False,
    snapshot_interval: float = 5.0,
    node_limit: int = 1_000_000,
    jax_exact: bool = False,
    stalls: bool = False,
    native: bool = False,
    gpu_calls: bool = False,
    memory: bool = True,
    cpu_rate: float = 100.0,
    counters: str | Sequence[str] = (),
    force: bool = False,
) -> Session:
    """Start profiling this process, on all its threads.

    Args:
        path: file to write to, where an older profile is replaced; None keeps the profile in
            memory until `stop` returns it.
        shapes: tell operators apart by the shapes of their inputs.
        snapshot_interval: seconds between two snapshots of the file, which survive a crash; 0
            writes it at the end only.
        node_limit: most nodes a thread's tree may have, up to 4,194,304; what comes after is
            counted one level up.
        jax_exact: measure the inside of compiled JAX programs all the time instead of 5 % of it:
            about 10 % slower, for short programs and rare operations.
        stalls: sample why the instructions of GPU kernels wait, a tenth of the time (NVIDIA).
        native: show the C and C++ functions between Python, operators and GPU calls (x86-64).
        gpu_calls: measure the calls of the GPU's API, too.
        memory: follow the memory of PyTorch's tensors and of JAX's arrays.
        cpu_rate: how often a second to look where each thread is between operators, up to 1000; 0
            for never.
        counters: what to read of the processor and the kernel at each such look, of ``cycles``,
            ``instructions``, ``cache-misses``, ``branch-misses``, ``page-faults`` and
            ``context-switches``, as names or as one text with commas between; what cannot be read
            here is named in the trust report.
        force: replace the file at `path` even if it is no profile.

    Raises:
        SessionError: when a session is running already.
        UserError: when `path` cannot be written or is a file that is no profile, a value is out of
            range, or a counter unknown.
        EnvironmentProblem: when the machine fails to write `path`, for example on a full disk.
    """
    from deepcontext.collectors import ALL  # noqa: PLC0415  the native core
    from deepcontext.profiler.recording import options as values  # noqa: PLC0415  as needed
    from deepcontext.profiler.recording.session import SessionOptions  # noqa: PLC0415

    interval = values.SNAPSHOT_INTERVAL
    options = SessionOptions(
        shapes=values.flag("shapes", shapes),
        snapshot_interval_s=values.number("snapshot_interval", snapshot_interval, interval),
        node_limit=values.whole_number("node_limit", node_limit, values.NODE_LIMIT),
        jax_exact=values.flag("jax_exact", jax_exact),
        stalls=values.flag("stalls", stalls),
        native=values.flag("native", native),
        gpu_calls=values.flag("gpu_calls", gpu_calls),
        memory=values.flag("memory", memory),
        cpu_rate_hz=values.number("cpu_rate", cpu_rate, values.CPU_RATE),
        counters=values.counters("counters", counters),
        force=values.flag("force", force),
    )
    return _manager().start(path, options, ALL)


def stop(reason: str = "exit") -> Profile:
    """Stop the running session, write its file and return the profile.

    Raises:
        SessionError: when no session is running.
    """
    import dataclasses  # noqa: PLC0415  not needed to import the package

    session = _manager().session
    capture = _manager().stop(reason)
    made = _profile_class().from_bytes(capture.encode())
    path = session.path if session else None
    return made if path is None else dataclasses.replace(made, source=str(path))


@overload
def profile(path: _Function) -> _Function: ...


@overload
def profile(  # settings by keyword
    path: str | os.PathLike[str] | None = None,
    *,
    shapes: bool = False,
    snapshot_interval: float = 5.0,
    node_limit: int = 1_000_000,
    jax_exact: bool = False,
    stalls: bool = False,
    native: bool = False,
    gpu_calls: bool = False,
    memory: bool = True,
    cpu_rate: float = 100.0,
    counters: str | Sequence[str] = (),
    force: bool = False,
) -> ProfiledPart: ...


def profile(path: Any = None, **settings: Any) -> Any:
    """Profile a block or the calls of a function.

    ``with profile("out.dcprof") as session:`` takes the arguments of `start`; after the block, the
    object that `profile` returned holds the Profile in `result`.

    ``@profile`` and ``@profile("out.dcprof", ...)`` profile each call of a function from its
    beginning to its end, also of a coroutine or a generator. Calls that overlap are one session. The
    file holds the last session; without a path it is ``FUNCTION.dcprof`` in the current folder.

    Raises:
        UserError: when a class is decorated.
    """
    from deepcontext.profiler.recording.part import ProfiledPart  # noqa: PLC0415  as all that is not needed yet

    inspect.signature(start).bind(None, **settings)  # an unknown setting is an error here and now
    is_bare = _is_function(path)
    part = ProfiledPart(None if is_bare else path, functools.partial(start, **settings), stop)
    return part(path) if is_bare else part


def _is_function(value: object) -> bool:
    if isinstance(value, staticmethod | classmethod):
        return True
    return callable(value) and not isinstance(value, os.PathLike)


def scope(name: str) -> Scope:
    """Give what runs inside a frame of its own: ``with deepcontext.scope("evaluate"): ...``.

    As a decorator, ``@deepcontext.scope("evaluate")``, it does so for each call of a function, which
    may be a coroutine or a generator. Does nothing while no session is running, so that it may stay in
    the program.
    """
    from deepcontext.profiler.recording.scope import Scope  # noqa: PLC0415  the native core

    return Scope(name)


def step() -> None:
    """Mark the end of one step of the main loop; does nothing when no session is running."""
    running = _manager().session
    if running is not None:
        running.step()


def __getattr__(name: str) -> object:
    """Load what needs numpy or the native core when it is asked for."""
    match name:
        case "Profile":
            return _profile_class()
        case "Session":
            from deepcontext.profiler.recording.session import Session  # noqa: PLC0415

            return Session
        case "__version__":
            from deepcontext import _native  # noqa: PLC0415

            return _native.VERSION
        case "_MANAGER":
            return _manager()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """Register the cell magic ``%%deepcontext``; called by ``%load_ext deepcontext``."""
    from deepcontext.ui import notebook  # noqa: PLC0415  imports the user interface

    notebook.load_ipython_extension(shell)


def _profile_class() -> type[Profile]:
    from deepcontext.profiler.model.profile import Profile  # noqa: PLC0415  imports numpy

    # How a notebook shows a profile is the user interface's matter, which the profiler may not know.
    Profile.html_view = staticmethod(_html_of)
    return Profile


def _html_of(profile: Profile) -> str:
    from deepcontext.ui.notebook import profile_html  # noqa: PLC0415  imports the user interface

    return profile_html(profile)
