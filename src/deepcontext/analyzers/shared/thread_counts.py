"""How many threads an operator computes with, against the processors that the process may use.

Threads beyond the processors wait for each other at the end of each part of an operator. Needs the
settings of PyTorch, which older profiles do not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.analyzers.shared import source_locations
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS
from deepcontext.profiler.model.metric_values import counts_or_zeros
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.torch_settings import torch_settings

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

_MOST_A_CORE: Final = 2
_LEAST_CORES_A_THREAD: Final = 4
# Smaller operators compute with one thread; larger ones gain by threads.
_LEAST_OPERATOR_NS: Final = 500_000
_LEAST_SHARE: Final = 0.5
# Processors that the process kept busy.
_MOST_BUSY: Final = 1.5


def threads(profile: Profile) -> list[Finding]:
    """Report far more or far fewer threads than processors."""
    settings = torch_settings(profile)
    if not settings.threads or not settings.cores or source_locations.has_device(profile):
        return []
    if settings.threads >= _MOST_A_CORE * settings.cores:
        return [_too_many(profile, settings.threads, settings.cores)]
    is_alone = profile.run.ranks <= 1 and _busy(profile) <= _MOST_BUSY
    if settings.threads * _LEAST_CORES_A_THREAD <= settings.cores and is_alone:
        return _too_few(profile, settings.threads, settings.cores)
    return []


def _busy(profile: Profile) -> float:
    run = profile.run
    return (run.cpu_user_ns + run.cpu_system_ns) / max(run.wall_ns, 1)


def _costliest(profile: Profile, least_ns: int) -> tuple[tuple[int, ...], int]:
    """Return the outermost operators of at least this mean duration, costliest first, and their time, ns."""
    operators = source_locations.outermost(Query(profile, profile.is_kind(FrameKind.OPERATOR)))
    nodes = operators.nodes()
    spent = profile.inclusive(HOST_TIME_NS.name)[nodes]
    calls = np.maximum(counts_or_zeros(profile, CALL_DURATION_NS.name)[nodes], 1)
    is_long = spent >= least_ns * calls
    order = np.argsort(-spent[is_long], kind="stable")
    return tuple(nodes[is_long][order].tolist()[:8]), int(spent[is_long].sum())


def _too_many(profile: Profile, count: int, cores: int) -> Finding:
    nodes, spent = _costliest(profile, 0)
    return Finding(
        id="settings",
        severity=Severity.WARNING,
        title=f"each operator computes with {count} threads on {cores} processors, so threads wait for a "
        "processor",
        nodes=nodes,
        evidence={"threads_count": count, "cores_count": cores},
        gain=source_locations.bound(
            profile,
            HOST_TIME_NS.name,
            spent,
            "operators take no time with the right number of threads",
        ),
        advice=(
            f"torch.set_num_threads({cores}), or OMP_NUM_THREADS={cores}; fewer where workers or other "
            "ranks compute at the same time"
        ),
        misleads="the processors were limited after the program had started",
    )


def _too_few(profile: Profile, count: int, cores: int) -> list[Finding]:
    nodes, spent = _costliest(profile, _LEAST_OPERATOR_NS)
    whole = source_locations.judged_total(profile, HOST_TIME_NS.name)
    if not whole or spent < _LEAST_SHARE * whole:
        return []
    return [
        Finding(
            id="settings",
            severity=Severity.INFO,
            title=f"operators compute with {count} of {cores} processors: is that meant?",
            nodes=nodes,
            evidence={"threads_count": count, "cores_count": cores},
            advice=(
                f"torch.set_num_threads({cores}), or OMP_NUM_THREADS={cores}; torchrun sets 1 where nothing "
                "is set"
            ),
            misleads="other processes need the processors",
        )
    ]
