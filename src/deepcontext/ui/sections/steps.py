"""The slowest steps, why they were slow, and the windows of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.summaries.kept_steps import causes, path_excesses, slowest_kept
from deepcontext.profiler.summaries.step_history import step_history
from deepcontext.ui.format import format_count
from deepcontext.ui.sections.table import Column, Table, Unit, picked
from deepcontext.ui.step_texts import cause_texts, path_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.windows import Window
    from deepcontext.profiler.summaries.kept_steps import Cause
    from deepcontext.ui.sections.table import Row

_SLOWEST: Final = (
    Column("number", "step", Unit.ONE_COUNT),
    Column("rank", "rank", Unit.NUMBER),
    Column("duration_ns", "time", Unit.ONE_NS),
    Column("end_ns", "ended after", Unit.ONE_NS),
    Column("more", "more than usual", Unit.NUMBER),
    Column("where", "where", Unit.TEXT),
)
_PATHS: Final = (
    Column("excess_ns", "more than usual", Unit.ONE_NS),
    Column("usual_ns", "usual", Unit.METRIC),  # often 0
    Column("path", "path", Unit.NAME),
)
_WINDOW: Final = (
    Column("part", "part", Unit.NUMBER),
    Column("steps", "steps", Unit.NUMBER),
    Column("wall_ns", "elapsed", Unit.ONE_NS),
    Column("step_ns", "step", Unit.ONE_NS),
    Column("longest_ns", "longest step", Unit.ONE_NS),
)


def slowest(profile: Profile, limit: int) -> Table:
    """Return the slowest steps: of the whole run, or of the kept steps of all ranks."""
    history = step_history(profile)
    if history is None:
        kept = [each for each in slowest_kept(profile) if ExemplarReason.SLOW in each.reasons]
        rows = [
            {**picked(step, "number", "duration_ns"), "end_ns": 0, **_explained(profile, step)}
            for step in kept[:limit]
        ]
        note = "of all ranks, compared with steps that ranks kept at random"
        return Table("Slowest steps", note, _SLOWEST, rows)
    by_number = {each.number: each for each in profile.exemplars}
    found = [(each, by_number.get(each.number)) for each in history.slowest[:limit]]
    missing = "no time line" if any(kept for _, kept in found) else ""
    rows = [
        {
            **picked(step, "number", "duration_ns", "end_ns"),
            **(_explained(profile, kept) if kept else {"rank": "", "more": "", "where": missing}),
        }
        for step, kept in found
    ]
    return Table("Slowest steps", "", _SLOWEST, rows)


def _explained(profile: Profile, step: Exemplar) -> Row:
    (cause,) = causes(profile, [step])
    more, where = cause_texts(cause, profile.run.cwd)
    return {"rank": "" if step.rank is None else str(step.rank), "more": more, "where": where}


def paths(profile: Profile, limit: int) -> Iterator[Table]:
    """Return the paths that made the slowest kept step slow."""
    for step in slowest_kept(profile)[:1]:
        rows = [
            {**picked(each, "excess_ns", "usual_ns"), "path": path_text(profile, each.node)}
            for each in path_excesses(profile, step)[:limit]
        ]
        of_rank = "" if step.rank is None else f" of rank {step.rank}"
        title = f"Why step {format_count(step.number)}{of_rank} is slow"
        note = "call paths with most more time than in the steps kept at random"
        yield Table(title, note, _PATHS, rows, metric_unit="ns")


def windows(found: Sequence[Window]) -> Table:
    """Return the windows of a run."""
    rows = [
        {
            "part": window.kind.value,
            "steps": f"{window.first_step}-{window.last_step}" if window.steps else "-",
            "wall_ns": window.wall_ns,
            "step_ns": window.times.mean_ns if window.times.count else None,
            "longest_ns": window.times.maximum_ns,
        }
        for window in found
    ]
    return Table("Windows", "parts of the run for --window", _WINDOW, rows)


def kept_steps_to_dict(run: Profile, limit: int) -> dict[str, Any]:
    """Return the kept steps of a run as a dict of JSON's types; the `limit` slowest as rows."""
    shown = slowest_kept(run)[:limit]
    rows = zip(shown, causes(run, shown), strict=True)
    return {"row_count": len(run.exemplars), "rows": [_step(run, *each) for each in rows]}


def _step(run: Profile, exemplar: Exemplar, cause: Cause) -> Row:
    before, after = cause.pause or (None, None)
    return {
        "number": exemplar.number,
        "rank": run.run.rank if exemplar.rank is None else exemplar.rank,
        **picked(exemplar, "begin_ns", "duration_ns"),
        "reasons": [each.name.lower() for each in exemplar.reasons if each.name],
        "cause": {
            "kind": "line" if cause.pause is None else "pause",
            **picked(cause, "own_ns", "usual_ns"),
            "line": _place(cause.line),
            "before": _place(before),
            "after": _place(after),
        },
    }


def _place(frame: Frame | None) -> str:
    return f"{frame.file}:{frame.line}" if frame else ""
