"""The account of elapsed time: its lines as tables, and as the first answer to a program or an agent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.verdict import WAITS, leading_lines, leading_set_up, verdicts
from deepcontext.ui.account_texts import base_text, causes_text, verdict_text
from deepcontext.ui.format import format_count, part_of
from deepcontext.ui.sections.table import Column, Table, Unit, picked, share
from deepcontext.ui.sections.view import View, line_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import GpuAccount, Place
    from deepcontext.profiler.summaries.occasions import Occasion
    from deepcontext.profiler.summaries.verdict import Verdict
    from deepcontext.ui.sections.table import Row

# Lines of other threads are shown where the main thread waits this share.
_LEAST_WAIT: Final = 0.1
_FEWEST: Final = 3
_NOTABLE_END: Final = 0.25
_WAITING: Final = (*WAITS, Cause.PROCESSOR)
_NO_LINE: Final = {"file": "outside your code", "line": 0, "function": "outside your code"}
_SPENT: Final = Column("spent_on", "spent on", Unit.NUMBER, rank=4)


def lines(view: View, most_causes: int = 2) -> Table:
    """Return the lines with the most time, or with the most GPU time where it limits the run.

    Args:
        view: what is shown.
        most_causes: number of causes that a row names.
    """
    found = account(view.profile)
    leading = leading_lines(found)
    # Without a line of the program there is nothing to divide.
    notable = leading.lines[: view.limit] if any(each.frame for each in found.lines) else ()
    shown = part_of(*(sum(each.frame is not None for each in of) for of in (notable, found.lines)))
    base = base_text(found, leading, view.basis.all_steps)
    values = [
        _time(view),
        Column("share", "share", Unit.SHARE),
        Column("gpu_ns", "GPU", Unit.NS, rank=0 if leading.by_gpu else 2),
    ]
    return view.table(
        "",
        f"by line{shown}, without deeper lines of yours; share of {base}:",
        (*(values[::-1] if leading.by_gpu else values), _SPENT, *view.line_columns(rank=3)),
        [
            {**_row(place, most_causes), "share": leading.value(place) / leading.whole_ns}
            for place in notable
        ],
    )


def other_threads(view: View) -> Table:
    """Return what other threads did, where the main thread waits."""
    found = account(view.profile)
    others = [place for place in found.others if place.frame is not None]
    if found.of(*_WAITING) < _LEAST_WAIT * found.work_ns:
        others = []
    return view.table(
        "",
        "meanwhile, on other threads, without waits for locks:",
        (_time(view), _SPENT, *view.line_columns(rank=3)),
        [_row(place, 1) for place in others[: max(view.limit // 2, _FEWEST)]],
    )


def set_up(view: View) -> Table | None:
    """Return the lines of a set-up in which the program works long, None where it does not."""
    found = leading_set_up(view.basis)
    if found is None:
        return None
    basis, ranks = view.basis, view.basis.ranks
    where = f"before step {format_count(basis.first_step)}"
    if basis.end_ns >= _NOTABLE_END * basis.setup_ns:
        where += f" and after step {format_count(basis.last_step)}"
    base = base_text(found, leading_lines(found), ranks=ranks)
    time, of_work = Column("time_ns", "time", Unit.NS), share("time_ns", found.work_ns)
    return Table(
        "",
        f"{where}; share of {base}:",
        (time, of_work, _SPENT, *view.line_columns(rank=3)),
        [_row(place, 1) for place in found.lines[: max(view.limit // 2, _FEWEST)]],
        steps=ranks,
    )


def _time(view: View) -> Column:
    return Column("time_ns", view.each.strip() or "time", Unit.NS)


def _row(place: Place, most_causes: int) -> Row:
    return {
        **picked(place, "time_ns", "gpu_ns"),
        "spent_on": causes_text(place, most_causes),
        **(line_of(place.frame) if place.frame else _NO_LINE),
    }


def account_to_dict(view: View) -> dict[str, Any]:
    """Return the account as a dict of JSON's types."""
    rest = view.basis.rest
    return {
        "verdicts": [_verdict(view.profile, verdict) for verdict in verdicts(view.profile)],
        **_part(view),
        "setup": rest and _part(replace(view, profile=rest)),
    }


def basis_to_dict(profile: Profile) -> dict[str, Any]:
    """Return what the figures of a report are of, as a dict of JSON's types."""
    basis = basis_of(profile)
    return {
        "part": basis.part.value,
        **picked(basis, "first_step", "steps", "step_ns", "setup_ns", "end_ns"),
        "occasions": [_occasion(each) for each in basis.occasions],
        "elapsed_ns": basis.profile.run.wall_ns,
    }


def _occasion(occasion: Occasion) -> dict[str, Any]:
    return {
        "kind": occasion.kind.value,
        "name": occasion.name,
        "file": occasion.frame.file if occasion.frame else "",
        "line": occasion.frame.line if occasion.frame else 0,
        **picked(occasion, "steps", "period", kept_steps="numbers", time_ns="time_ns"),
    }


def _part(view: View) -> dict[str, Any]:
    found = account(view.profile)
    leading = leading_lines(found)
    by_lead = sorted(found.lines, key=lambda place: -leading.value(place))

    def rows(places: Sequence[Place]) -> dict[str, Any]:
        shown = [_place(view, place, found.work_ns) for place in places[: view.limit]]
        return {"row_count": len(places), "rows": shown}

    return {
        **picked(found, "work_ns", "ready_ns", "is_sampled", elapsed_ns="whole_ns"),
        "causes": [
            {"cause": str(cause), "time_ns": value, "share": value / found.whole_ns}
            for cause, value in found.causes
        ],
        "ordered_by": "gpu_ns" if leading.by_gpu else "time_ns",
        "lines": rows(by_lead),
        "imports": rows(found.imports),
        "other_threads": rows(found.others),
        "gpu": found.gpu and _gpu(view, found.gpu),
    }


def _verdict(profile: Profile, verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": str(verdict.limit),
        "text": verdict_text(profile, verdict),
        "share": verdict.share,
        "causes": [{"cause": str(cause), "share": part} for cause, part in verdict.causes],
        "file": verdict.frame.file if verdict.frame else "",
        "line": verdict.frame.line if verdict.frame else 0,
    }


def _place(view: View, place: Place, whole_ns: int) -> dict[str, Any]:
    return {
        **view.frame(place.frame),
        **picked(place, "time_ns", "gpu_ns"),
        "share": place.time_ns / whole_ns if whole_ns else 0.0,
        "causes": [{"cause": str(cause), "time_ns": value} for cause, value in place.causes],
        "callees": [picked(each, "name", "time_ns") for each in place.callees],
    }


def _gpu(view: View, gpu: GpuAccount) -> dict[str, Any]:
    late = [{**view.frame(frame), "idle_ns": value} for frame, value in gpu.late[: view.limit]]
    return {
        **picked(gpu, "busy_ns", "copy_ns", "idle_ns", "gap_ns"),
        "late": {"row_count": len(gpu.late), "rows": late},
    }
