"""The account of elapsed time for the page's first view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.source import line_text
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.verdict import leading_lines, leading_set_up, verdicts
from deepcontext.ui.account_texts import (
    base_text,
    causes_text,
    groups_of,
    occasions_text,
    setup_text,
    steady_text,
    verdict_text,
)
from deepcontext.ui.format import format_share
from deepcontext.ui.web.answers import (
    AccountAnswer,
    GroupAnswer,
    PlaceAnswer,
    VerdictAnswer,
)

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import Account, GpuAccount, Place

_MOST_LINES: Final = 8
_MOST_OTHERS: Final = 4
_LEAST_PART: Final = 0.01


def account_answer(profile: Profile) -> AccountAnswer | None:
    """Return the account of a profile, None where no time was recorded."""
    basis = basis_of(profile)
    profile, found = basis.profile, account(basis.profile)
    if not found.whole_ns:
        return None
    leading = leading_lines(found)
    set_up = leading_set_up(basis)
    return AccountAnswer(
        verdicts=[
            VerdictAnswer(
                verdict_text(profile, verdict),
                verdict.frame.file if verdict.frame else "",
                verdict.frame.line if verdict.frame else 0,
            )
            for verdict in verdicts(profile)
        ],
        steady=steady_text(basis),
        besides=occasions_text(basis),
        setup=setup_text(basis),
        steps=basis.all_steps,
        whole_ns=found.whole_ns,
        groups=_groups(found),
        gpu=_gpu(found.gpu),
        by_gpu=leading.by_gpu,
        lines_whole_ns=leading.whole_ns,
        base=base_text(found, leading, basis.all_steps),
        lines=[_place(profile, place) for place in leading.lines[:_MOST_LINES]],
        others=[_place(profile, place) for place in found.others if place.frame][:_MOST_OTHERS],
        setup_whole_ns=set_up.work_ns if set_up else 0,
        setup_lines=[_place(profile, place) for place in set_up.lines[:_MOST_OTHERS]]
        if set_up
        else [],
    )


def _groups(found: Account) -> list[GroupAnswer]:
    return [
        GroupAnswer(
            group.name,
            round(group.share * found.whole_ns),
            ", ".join(
                f"{name} {format_share(share)}"
                for name, share in group.parts
                if share >= _LEAST_PART
            ),
        )
        for group in groups_of(found)
        if group.share
    ]


def _gpu(gpu: GpuAccount | None) -> list[GroupAnswer]:
    if gpu is None or not gpu.is_idle_known:
        return []
    return [
        GroupAnswer("kernels", gpu.busy_ns - gpu.copy_ns, ""),
        GroupAnswer("copies", gpu.copy_ns, ""),
        GroupAnswer("gaps between queued work", gpu.gap_ns, ""),
        GroupAnswer("idle: nothing queued", gpu.idle_ns, ""),
    ]


def _place(profile: Profile, place: Place) -> PlaceAnswer:
    frame = place.frame
    text = line_text(frame.file, frame.line, profile.run.start_unix_ns or None) if frame else ""
    return PlaceAnswer(
        frame.file if frame else "",
        frame.line if frame else 0,
        text or (frame.name if frame else "outside your code"),
        causes_text(place),
        place.time_ns,
        place.gpu_ns,
    )
