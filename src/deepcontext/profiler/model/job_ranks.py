"""Which profiles of a job are its ranks, and which of these belong to its last attempt.

Does not read files or merge. A child of a rank inherits the launcher's variables, so its profile
names the same rank. A launcher that restarts ranks leaves several profiles of each rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from deepcontext.profiler.model.parents import parents_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.run_info import RunInfo


class OfProcess(Protocol):
    """What is known about a process: a profile, or only its run."""

    @property
    def run(self) -> RunInfo:
        """The process's run."""
        ...


Name = TypeVar("Name")
Known = TypeVar("Known", bound=OfProcess)

_FRAMEWORKS = frozenset({"torch.distributed", "jax.distributed"})


def ranks_of(profiles: Mapping[Name, Known]) -> dict[Name, Known]:
    """Return the profiles of ranks, without the children of ranks."""
    ranked = {name: profile for name, profile in profiles.items() if profile.run.ranks}
    runs = [profile.run for profile in ranked.values()]
    parents = [None if n is None else runs[n] for n in parents_of(runs)]
    return {
        name: profile
        for (name, profile), run, parent in zip(ranked.items(), runs, parents, strict=True)
        if parent is None or (parent.rank, parent.ranks) != (run.rank, run.ranks)
    }


def last_attempt(ranks: Mapping[Name, Known]) -> dict[Name, Known]:
    """Return one profile for each rank of the last attempt, in order, for the size of the job then.

    Each host counts attempts separately, so attempts of two hosts are not compared.

    Args:
        ranks: what `ranks_of` returns.
    """
    attempts: dict[str, int] = {}
    for profile in ranks.values():
        run = profile.run
        attempts[run.hostname] = max(run.attempt, attempts.get(run.hostname, 0))
    chosen: dict[int, tuple[Name, Known]] = {}
    for name, profile in ranks.items():
        run = profile.run
        if run.attempt < attempts[run.hostname]:
            continue
        known = chosen.get(run.rank)
        if known is None or _certainty(run) > _certainty(known[1].run):
            chosen[run.rank] = name, profile
    newest = max((p.run for _, p in chosen.values()), key=_start, default=None)
    return {
        name: profile
        for _, (name, profile) in sorted(chosen.items(), key=lambda item: item[0])
        if newest is not None and profile.run.ranks == newest.ranks
    }


def _certainty(run: RunInfo) -> tuple[bool, bool, int]:
    """Order processes that name the same rank: the rank itself comes last, the latest attempt after others.

    A rank from a framework is more certain than a rank from a variable. Workers of a data loader have a
    name in `multiprocessing`; their parent has no profile if a fork server made them.
    """
    return run.rank_source in _FRAMEWORKS, not run.process_name, run.start_unix_ns


def _start(run: RunInfo) -> int:
    return run.start_unix_ns
