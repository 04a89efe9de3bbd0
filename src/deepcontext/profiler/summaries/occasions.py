"""What only some steps of a steady state do: a compilation, an evaluation, another model.

A part of the tree is occasional if most of the steps that were kept at random have no event of it. Whatever
is of the kinds below is no part of a usual step; a checkpoint, a stall and the like are, and slow steps say
so. Without kept steps, nothing is occasional. Does not change a profile (`basis.py`).
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.elapsed import ELAPSED_TIME_NS
from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.model.metric_values import counts_or_zeros, exclusive_or_zeros
from deepcontext.profiler.model.other_models import models
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.model.windows import WindowKind
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.setup_time import compiling
from deepcontext.profiler.summaries.time_between_operators import on_main_threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar
    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# Fewer steps at random do not tell what is usual.
_FEWEST: Final = 4
_USUAL: Final = 0.5
# What a larger share of all steps does, such as one of two models in turn, is a part of the mean step.
_MOST: Final = 0.25
# What takes less of the usual steps changes no figure.
_LEAST: Final = 0.01
# So many steps that are equally far apart are no chance.
_REGULAR: Final = 3


class OccasionKind(enum.StrEnum):
    """What a step does that usual ones do not."""

    COMPILATION = "compilation"
    EVALUATION = "evaluation"  # a model or program without a backward pass, in a training
    OTHER = "other"  # a model or program: where no step has a backward pass, or in other windows


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """Something that only some steps do.

    Attributes:
        kind: what it is.
        name: the outermost module or program; "" for a compilation.
        frame: the line of the user's code, None where no line called it.
        steps: number of the steps that do it, as their events tell; of a job, the mean of its ranks.
        period: number of steps from one to the next, 0 where there is no order.
        numbers: numbers of the kept steps that do it, ascending.
        time_ns: time of the main thread.
        nodes: where in the tree, shape (nodes,).
    """

    kind: OccasionKind
    name: str
    frame: Frame | None
    steps: int
    period: int
    numbers: tuple[int, ...]
    time_ns: int
    nodes: Mask

    def has(self, step: int) -> bool:
        """Return whether a step of this number is known to do it."""
        regular = self.period and step % self.period == self.numbers[0] % self.period
        return bool(regular) or step in self.numbers


def occasions(steady: Profile) -> tuple[Occasion, ...]:
    """Return what only some steps of a profile of steady windows do, longest first."""
    run, windows = cast("Profile", steady.whole or steady), steady.of_windows
    kept = [
        each
        for each in run.exemplars
        if windows and windows[0].first_step <= each.number <= windows[-1].last_step
    ]
    random = [each for each in kept if ExemplarReason.RANDOM in each.reasons]
    if len(random) < _FEWEST:
        return ()
    return _Steps(steady, kept, random).occasions()


def other_models(run: Profile) -> tuple[Occasion, ...]:
    """Return the models that run in windows before or after the steady state, longest first."""
    user, found = nearest_user(run), []
    windows = [each for each in run.windows if each.kind is WindowKind.OTHER]
    for model in dict.fromkeys(each.model for each in windows):
        its = [each for each in windows if each.model == model]
        place, nodes = int(user[model]), np.zeros(len(run.tree), np.bool_)
        nodes[model : run.tree.subtree_end[model]] = True
        kept = (
            each.number
            for each in run.exemplars
            if any(window.first_step <= each.number <= window.last_step for window in its)
        )
        found.append(
            Occasion(
                OccasionKind.OTHER,
                run.frame(model).name,
                None if place == NO_NODE else run.frame(place),
                sum(each.steps for each in its),
                0,
                tuple(sorted(kept)) or (its[0].first_step,),
                sum(each.wall_ns for each in its),
                nodes,
            )
        )
    return tuple(sorted(found, key=lambda each: -each.time_ns))


class _Steps:
    """The events of the kept steps.

    Attributes:
        events: number of events of each node in the steady state, shape (nodes,).
        seen: the same of each kept step whose spans are all there, in order.
        is_usual: the nodes with events, or above events, in most of the random steps, shape (nodes,).
    """

    def __init__(
        self, steady: Profile, kept: Sequence[Exemplar], random: Sequence[Exemplar]
    ) -> None:
        tree = steady.tree
        self.steady = steady
        self.events = counts_or_zeros(steady, CALL_DURATION_NS.name)
        whole = cast("Profile", steady.whole or steady)
        found = ((each, _events(whole, each)) for each in kept)
        self.seen = {step: each for step, each in found if each is not None}
        times = np.zeros(len(tree), np.int64)
        usual = [self.seen[step] for step in random if step in self.seen]
        for each in usual:
            times += tree.at_or_above(each > 0)
        run = steady.run
        self.ranks = run.ranks if run.rank == ALL_RANKS else 1
        self.is_usual = times >= _USUAL * max(len(usual), _FEWEST)

    def occasions(self) -> tuple[Occasion, ...]:
        time = self._time()
        parts: dict[tuple[OccasionKind, str, Frame | None], Mask] = {}
        for kind, name, frame, nodes in self._parts():
            before = parts.get((kind, name, frame))
            parts[kind, name, frame] = nodes if before is None else before | nodes
        spent = {what: int(time[nodes].sum()) for what, nodes in parts.items()}
        least = _LEAST * (self.steady.run.wall_ns - sum(spent.values()))
        found = (
            self._occasion(*what, nodes, spent[what])
            for what, nodes in parts.items()
            if spent[what] >= least
        )
        return tuple(sorted((each for each in found if each), key=lambda each: -each.time_ns))

    def _time(self) -> Ints:
        time = exclusive_or_zeros(self.steady, ELAPSED_TIME_NS.name)
        return np.where(on_main_threads(self.steady), time, 0)

    def _parts(self) -> Iterator[tuple[OccasionKind, str, Frame | None, Mask]]:
        """Yield parts of the tree that are occasional, each with what it is and its line."""
        profile, tree = self.steady, self.steady.tree
        is_compiling = compiling(profile)
        is_root = models(profile)
        has_backward = tree.phase == Phase.BACKWARD
        kind = OccasionKind.EVALUATION if has_backward.any() else OccasionKind.OTHER
        user = nearest_user(profile)
        for node in tree.outermost((tree.inclusive(self.events) > 0) & ~self.is_usual).tolist():
            inside = np.zeros(len(tree), np.bool_)
            inside[node : tree.subtree_end[node]] = True
            compiled = inside & is_compiling
            for top in tree.outermost(compiled).tolist():
                place = int(user[top])
                below = np.zeros_like(inside)
                below[top : tree.subtree_end[top]] = True
                frame = None if place == NO_NODE else profile.frame(place)
                yield OccasionKind.COMPILATION, "", frame, below
            roots = np.flatnonzero(inside & is_root)
            if len(roots) and not (inside & has_backward).any():
                place = int(user[node])
                frame = None if place == NO_NODE else profile.frame(place)
                yield kind, profile.frame(int(roots[0])).name, frame, inside & ~compiled

    def _occasion(
        self, kind: OccasionKind, name: str, frame: Frame | None, nodes: Mask, time_ns: int
    ) -> Occasion | None:
        seen = {step: each for step, each in self.seen.items() if each[nodes].any()}
        if not seen:
            return None
        known = nodes & (np.sum(list(seen.values()), axis=0) > 0)
        each_step = np.mean([each[known].sum() for each in seen.values()])
        numbers = tuple(sorted({step.number for step in seen}))
        on_all_ranks = float(self.events[known].sum() / each_step)
        steps = max(len(numbers), round(on_all_ranks / self.ranks))
        all_steps = sum(each.steps for each in self.steady.of_windows)
        if steps > _MOST * all_steps:
            return None
        period = self._period(numbers, steps, all_steps)
        return Occasion(kind, name, frame, steps, period, numbers, time_ns, nodes)

    def _period(self, numbers: Sequence[int], steps: int, all_steps: int) -> int:
        """Return the number of steps from one to the next that fits the kept ones and how many there are."""
        if len(numbers) < _REGULAR:
            return 0
        apart = math.gcd(*np.diff(numbers).tolist())
        # Not all of them are kept.
        possible = (each for each in range(apart, 1, -1) if apart % each == 0)
        return next((each for each in possible if abs(steps - all_steps / each) <= 1), 0)


def _events(run: Profile, exemplar: Exemplar) -> Ints | None:
    """Return the number of events of each node in a kept step, shape (nodes,); None if some are lost."""
    events = np.zeros(len(run.tree), np.int64)
    for lane in run.lanes(exemplar):
        if lane.device is None:
            if lane.known_from_ns > 0:
                return None
            events += np.bincount(lane.node, minlength=len(events))
    return events
