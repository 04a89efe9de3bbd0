"""Kept steps as JSON; `docs/reference/report-json.md` documents the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepcontext.profiler.summaries.kept_steps import causes, slowest_kept

if TYPE_CHECKING:
    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.kept_steps import Cause


def kept_steps_to_dict(run: Profile, limit: int) -> dict[str, Any]:
    """Return the kept steps of a run as a dict of JSON's types; the `limit` slowest as rows."""
    shown = slowest_kept(run)[:limit]
    rows = zip(shown, causes(run, shown), strict=True)
    return {"row_count": len(run.exemplars), "rows": [_step(run, *each) for each in rows]}


def _step(run: Profile, exemplar: Exemplar, cause: Cause) -> dict[str, Any]:
    before, after = cause.pause or (None, None)
    return {
        "number": exemplar.number,
        "rank": run.run.rank if exemplar.rank is None else exemplar.rank,
        "begin_ns": exemplar.begin_ns,
        "duration_ns": exemplar.duration_ns,
        "reasons": [each.name.lower() for each in exemplar.reasons if each.name],
        "cause": {
            "kind": "line" if cause.pause is None else "pause",
            "own_ns": cause.own_ns,
            "usual_ns": cause.usual_ns,
            "line": _place(cause.line),
            "before": _place(before),
            "after": _place(after),
        },
    }


def _place(frame: Frame | None) -> str:
    return f"{frame.file}:{frame.line}" if frame else ""
