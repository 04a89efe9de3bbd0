"""Which lines work repeatedly, from the first steps of a program to the last.

A sample says in which step it was taken. This separates the setup of a program, and the work after its
last step, from its steps. In a program without steps, such as a server, the number of operators that had
begun takes the place of steps: it stands still while one line works for long, and rises in a loop. Does
not judge lines (`host_work.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.metric import (
    SAMPLED_CPU_TIME_NS,
    SAMPLED_OPERATORS,
    SAMPLED_STEP,
    SLOW_STEP_TIME_NS,
)
from deepcontext.profiler.model.grouping import Groups
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.slow_steps import slow_steps
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    import numpy.typing as npt

    from deepcontext.profiler.model.profile import Profile

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# Of the steps: those between a line's first and last sample, and where the mean of its samples lies. Work
# of the first step only, such as filling a cache, has its mean near the first step.
_LEAST_SPAN: Final = 0.5
_MEAN_WITHIN: Final = (0.25, 0.75)
_FEWEST_SAMPLES: Final = 5
_FEWEST_TO_GROW: Final = 50
# Of the steps: where the mean of the samples of growing work lies at least, and how far behind other work.
_GROWING_MEAN: Final = 0.57
_LATER: Final = 0.06
# Source: a uniform distribution from 0 to 1 has this mean and deviation; so many deviations are no chance.
_EVEN_MEAN: Final = 0.5
_DEVIATION: Final = 12**-0.5
_SURELY: Final = 2.5
# Of the time of nodes: what is in slow steps, whose samples come together.
_MOST: Final = 0.6
_EARLY: Final = 0.25
# Fewer steps do not tell the loop from what comes before it; nor do fewer operators.
_FEWEST_STEPS: Final = 5
_FEWEST_OPERATORS: Final = 1000


def last_step(profile: Profile) -> int:
    """Return how many steps had begun when the last sample was taken, 0 where that is unknown."""
    return _last(profile, SAMPLED_STEP.name)


def has_steps(profile: Profile) -> bool:
    """Return whether enough steps were seen to tell the loop from what comes before it."""
    return min(step_count(profile), last_step(profile)) >= _FEWEST_STEPS


def has_operator_clock(profile: Profile) -> bool:
    """Return whether enough operators ran between samples to take the place of steps."""
    return _last(profile, SAMPLED_OPERATORS.name) >= _FEWEST_OPERATORS


def _last(profile: Profile, clock: str) -> int:
    rows = profile.metrics.get(clock)
    if rows is None or rows.maximum is None or not len(rows.maximum):
        return 0
    return int(rows.maximum.max())


def repeated(profile: Profile) -> Mask:
    """Return which nodes belong to lines that work repeatedly, shape (nodes,), bool.

    A node belongs to the line of user code at or above it.
    """
    clock = SAMPLED_STEP.name if has_steps(profile) else SAMPLED_OPERATORS.name
    rows = profile.metrics.get(clock)
    if rows is None or rows.minimum is None or rows.maximum is None:
        return np.zeros(len(profile.tree), np.bool_)
    line = _lines(profile)
    groups = Groups.of(line[rows.node])
    lines, first, last = groups.key, groups.least(rows.minimum), groups.most(rows.maximum)
    count = groups.sums(rows.count.astype(np.int64))
    mean = groups.sums(rows.total) / np.maximum(count, 1)
    steps = _last(profile, clock)
    low, high = (share * steps for share in _MEAN_WITHIN)
    is_repeated = (
        (lines != -1)
        & (count >= _FEWEST_SAMPLES)
        & (last - first >= _LEAST_SPAN * steps)
        & (low <= mean)
        & (mean <= high)
    )
    return np.isin(line, lines[is_repeated])


def grows(profile: Profile, nodes: Ints) -> bool:
    """Return whether nodes take more time from step to step, as work on all values so far does.

    Work that stays the same has the mean of its samples at half of the steps, work that grows evenly at two
    thirds. The other samples of the steps are the reference, because a busy machine slows all of them.
    """
    rows = profile.metrics.get(SAMPLED_STEP.name)
    if rows is None or rows.minimum is None or not has_steps(profile):
        return False
    steps = last_step(profile)
    chosen = np.isin(rows.node, nodes)
    others = ~chosen & (rows.minimum < steps)  # what comes after the last step is no work of steps
    count, reference = (int(rows.count[which].sum()) for which in (chosen, others))
    if count < _FEWEST_TO_GROW or int(rows.minimum[chosen].min()) > _EARLY * steps:
        return False
    mean = rows.total[chosen].sum() / (steps * count)
    by_chance = _EVEN_MEAN + _SURELY * _DEVIATION / np.sqrt(_apart(profile, nodes, count))
    if mean < max(_GROWING_MEAN, by_chance) or not reference:
        return False
    return bool(mean - rows.total[others].sum() / (steps * reference) >= _LATER)


def _apart(profile: Profile, nodes: Ints, count: int) -> int:
    """Return how many of the samples of nodes are independent: those of one slow step come together."""
    found = slow_steps(profile)
    spent, in_slow = (
        int(exclusive_or_zeros(profile, metric.name)[nodes].sum())
        for metric in (SAMPLED_CPU_TIME_NS, SLOW_STEP_TIME_NS)
    )
    if found is None or in_slow < _MOST * spent:
        return count
    return min(count, max(len(found.slowest), 1))


def before_steps(profile: Profile) -> Mask:
    """Return which nodes belong to lines that were only sampled before the first step, shape (nodes,)."""
    rows = profile.metrics.get(SAMPLED_STEP.name)
    if rows is None or rows.maximum is None or not step_count(profile):
        return np.zeros(len(profile.tree), np.bool_)
    line = _lines(profile)
    sampled = np.unique(line[rows.node])
    later = np.unique(line[rows.node[rows.maximum > 0]])
    return np.isin(line, np.setdiff1d(sampled, [-1, *later.tolist()]))


def _lines(profile: Profile) -> Ints:
    """Return a number for the line of user code that each node belongs to, -1 for none."""
    owner = nearest_user(profile)
    line = profile.frames.source_line()[profile.tree.frame[owner]]
    return np.where(owner == NO_NODE, -1, line)
