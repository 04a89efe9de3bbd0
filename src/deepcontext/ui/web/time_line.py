"""Kept steps as the page draws them: the times of all steps, and each kept step by thread and stream.

Names, lines and colours' layers are those of the graph. The page places the spans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.kept_steps import causes, path_excesses
from deepcontext.profiler.summaries.lines import nearest_user
from deepcontext.profiler.summaries.step_history import step_history
from deepcontext.profiler.summaries.steps import step_rule
from deepcontext.profiler.views.layers import LAYER_OF_KIND
from deepcontext.ui.format import format_ns
from deepcontext.ui.step_texts import cause_texts, lane_name, path_text, why_kept
from deepcontext.ui.web.answers import (
    ErrorAnswer,
    KeptStep,
    LaneAnswer,
    LinePlace,
    SpanNode,
    StepAnswer,
    StepPart,
    StepWindow,
    TimeLineAnswer,
)
from deepcontext.ui.web.tables import line_place

if TYPE_CHECKING:
    from collections.abc import Collection

    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.kept_steps import Cause

# Spans of all steps in a page's own file, about 8 bytes each.
MOST_SPANS: Final = 60_000
_MOST_PATHS: Final = 5
_NOT_HERE: Final = (
    "this step is not in the file, which has room for the slowest ones; open the profile itself with "
    "'deepcontext view'"
)


def steps_shown(profile: Profile) -> tuple[Exemplar, ...]:
    """Return the kept steps; none of joined ranks, whose numbers and times are those of each rank."""
    return () if profile.run.rank == ALL_RANKS else profile.exemplars


def time_line(profile: Profile) -> TimeLineAnswer:
    """Return the times of all steps of the run, and which were kept; of a part, which windows it has."""
    part, profile = profile, cast("Profile", profile.whole or profile)
    history, rule, exemplars = step_history(profile), step_rule(profile), steps_shown(profile)
    parts = history.parts if history else ()
    return TimeLineAnswer(
        rule=f"a step is {rule.explain()}" if rule else "",
        parts=[
            StepPart(each.count, each.total_ns, each.minimum_ns, each.maximum_ns) for each in parts
        ],
        windows=_windows(profile, {each.number for each in part.of_windows}),
        steps=[
            KeptStep(
                number=exemplar.number,
                begin_ns=exemplar.begin_ns,
                duration_ns=exemplar.duration_ns,
                why=why_kept(exemplar),
                cause=_cause(cause, profile.run.cwd),
                paths=[
                    f"{format_ns(each.excess_ns)}: {path_text(profile, each.node)}"
                    for each in path_excesses(profile, exemplar)[:_MOST_PATHS]
                ],
            )
            for exemplar, cause in zip(exemplars, causes(profile, exemplars), strict=True)
        ],
    )


def _windows(profile: Profile, shown: Collection[int]) -> list[StepWindow]:
    return [
        StepWindow(each.first_step, each.last_step, each.kind.value, each.number in shown)
        for each in profile.windows
        if each.steps
    ]


def _cause(cause: Cause, cwd: str) -> str:
    more, where = cause_texts(cause, cwd)
    return f"{more} more than usual: {where}"


def step(profile: Profile, number: str) -> StepAnswer:
    """Return one kept step.

    Raises:
        QueryError: the step was not kept.
    """
    for exemplar in steps_shown(profile):
        if str(exemplar.number) == number:
            return _step(profile, exemplar)
    raise QueryError(f"step '{number[:20]}' was not kept in this profile")


def steps_of_page(profile: Profile) -> dict[str, StepAnswer | ErrorAnswer]:
    """Return the slowest kept steps by number, as many as a page's file has room for."""
    answers: dict[str, StepAnswer | ErrorAnswer] = {}
    left = MOST_SPANS
    for exemplar in sorted(steps_shown(profile), key=lambda each: -each.duration_ns):
        answer = _step(profile, exemplar)
        left -= sum(len(lane.node) for lane in answer.lanes)
        if left < 0:
            answers[""] = ErrorAnswer(_NOT_HERE)
            break
        answers[str(exemplar.number)] = answer
    return answers


def _step(profile: Profile, exemplar: Exemplar) -> StepAnswer:
    lanes = profile.lanes(exemplar)
    every = np.concatenate([lane.node for lane in lanes]) if lanes else np.zeros(0, np.int64)
    nodes, index = np.unique(every, return_inverse=True)
    answers, begin = [], 0
    for lane in lanes:
        answers.append(_lane(lane, index[begin : begin + len(lane)]))
        begin += len(lane)
    nearest = nearest_user(profile)
    return StepAnswer(
        number=exemplar.number,
        duration_ns=exemplar.duration_ns,
        nodes=[_node(profile, node, int(nearest[node])) for node in nodes.tolist()],
        lanes=answers,
    )


def _lane(lane: Lane, index: np.ndarray) -> LaneAnswer:
    return LaneAnswer(
        name=lane_name(lane),
        is_device=lane.device is not None,
        known_from_ns=lane.known_from_ns,
        node=index.tolist(),
        begin_step=np.diff(lane.begin_ns, prepend=0).tolist(),
        duration_ns=lane.duration_ns.tolist(),
    )


def _node(profile: Profile, node: int, user: int) -> SpanNode:
    frame = profile.frame(node)
    line = None if user == NO_NODE else profile.frame(user)
    modules = [each.name for each in profile.path(node) if each.kind is FrameKind.MODULE]
    return SpanNode(
        node=node,
        name=frame.name,
        layer=LAYER_OF_KIND[FrameKind(frame.kind)].label,
        phase=Phase(int(profile.tree.phase[node])).label,
        place=line_place(profile, line.file, line.line) if line else LinePlace("", "", 0),
        modules=" > ".join(modules),
    )
