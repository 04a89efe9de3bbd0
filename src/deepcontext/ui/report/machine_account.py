"""The account of elapsed time for programs: a part of `machine.py`, and the first answer to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.verdict import leading_lines, verdicts
from deepcontext.ui.account_texts import verdict_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import GpuAccount, Place
    from deepcontext.profiler.summaries.occasions import Occasion
from deepcontext.profiler.summaries.verdict import Verdict


def account_to_dict(profile: Profile, limit: int) -> dict[str, Any]:
    """Return the account as a dict of JSON's types; `limit` rows of each table."""
    basis = basis_of(profile)
    return {
        "verdicts": [_verdict(profile, verdict) for verdict in verdicts(profile)],
        **_part(basis.profile, limit),
        "setup": basis.rest and _part(basis.rest, limit),
    }


def basis_to_dict(profile: Profile) -> dict[str, Any]:
    """Return what the figures of a report are of, as a dict of JSON's types."""
    basis = basis_of(profile)
    return {
        "part": basis.part.value,
        "first_step": basis.first_step,
        "steps": basis.steps,
        "step_ns": basis.step_ns,
        "occasions": [_occasion(each) for each in basis.occasions],
        "elapsed_ns": basis.profile.run.wall_ns,
        "setup_ns": basis.setup_ns,
        "end_ns": basis.end_ns,
    }


def _occasion(occasion: Occasion) -> dict[str, Any]:
    return {
        "kind": occasion.kind.value,
        "name": occasion.name,
        "file": occasion.frame.file if occasion.frame else "",
        "line": occasion.frame.line if occasion.frame else 0,
        "steps": occasion.steps,
        "period": occasion.period,
        "kept_steps": list(occasion.numbers),
        "time_ns": occasion.time_ns,
    }


def _part(profile: Profile, limit: int) -> dict[str, Any]:
    found = account(profile)
    leading = leading_lines(found)
    lines = sorted(found.lines, key=lambda place: -leading.value(place))

    def rows(places: Sequence[Place]) -> dict[str, Any]:
        shown = [_place(profile, place, found.work_ns) for place in places[:limit]]
        return {"row_count": len(places), "rows": shown}

    return {
        "elapsed_ns": found.whole_ns,
        "work_ns": found.work_ns,
        "ready_ns": found.ready_ns,
        "is_sampled": found.is_sampled,
        "causes": [
            {"cause": str(cause), "time_ns": value, "share": value / found.whole_ns}
            for cause, value in found.causes
        ],
        "ordered_by": "gpu_ns" if leading.by_gpu else "time_ns",
        "lines": rows(lines),
        "imports": rows(found.imports),
        "other_threads": rows(found.others),
        "gpu": found.gpu and _gpu(profile, found.gpu, limit),
    }


def _verdict(profile: Profile, verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": str(verdict.limit),
        "text": verdict_text(profile, verdict),
        "share": verdict.share,
        "causes": [{"cause": str(cause), "share": share} for cause, share in verdict.causes],
        "file": verdict.frame.file if verdict.frame else "",
        "line": verdict.frame.line if verdict.frame else 0,
    }


def _place(profile: Profile, place: Place, whole_ns: int) -> dict[str, Any]:
    return {
        **_line(profile, place.frame),
        "time_ns": place.time_ns,
        "share": place.time_ns / whole_ns if whole_ns else 0.0,
        "causes": [{"cause": str(cause), "time_ns": value} for cause, value in place.causes],
        "gpu_ns": place.gpu_ns,
        "callees": [{"name": each.name, "time_ns": each.time_ns} for each in place.callees],
    }


def _gpu(profile: Profile, gpu: GpuAccount, limit: int) -> dict[str, Any]:
    late = [{**_line(profile, frame), "idle_ns": value} for frame, value in gpu.late[:limit]]
    return {
        "busy_ns": gpu.busy_ns,
        "copy_ns": gpu.copy_ns,
        "idle_ns": gpu.idle_ns,
        "gap_ns": gpu.gap_ns,
        "late": {"row_count": len(gpu.late), "rows": late},
    }


def _line(profile: Profile, frame: Frame | None) -> dict[str, Any]:
    if frame is None:
        return {"file": "", "line": 0, "function": "", "source": ""}
    text = line_text(frame.file, frame.line, profile.run.start_unix_ns or None)
    return {"file": frame.file, "line": frame.line, "function": frame.name, "source": text}
