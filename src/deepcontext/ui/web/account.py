"""The account of elapsed time for the page's first view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.verdict import leading_lines, leading_set_up, verdicts
from deepcontext.ui.account_texts import (
    base_text,
    groups_of,
    occasions_text,
    setup_text,
    steady_text,
    verdict_text,
)
from deepcontext.ui.format import format_share
from deepcontext.ui.sections import account as tables
from deepcontext.ui.sections.view import View
from deepcontext.ui.web.answers import (
    AccountAnswer,
    GroupAnswer,
    PlaceAnswer,
    VerdictAnswer,
)

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import Account, GpuAccount
    from deepcontext.ui.sections.table import Table

_MOST_LINES: Final = 8
_LEAST_PART: Final = 0.01


def account_answer(profile: Profile) -> AccountAnswer | None:
    """Return the account of a profile, None where no time was recorded."""
    basis = basis_of(profile)
    profile, found = basis.profile, account(basis.profile)
    if not found.whole_ns:
        return None
    leading, of_setup = leading_lines(found), leading_set_up(basis)
    view = View(profile, default_metric(profile), _MOST_LINES)
    set_up = tables.set_up(view)
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
        lines=_places(view, tables.lines(view)),
        others=_places(view, tables.other_threads(view)),
        setup_whole_ns=of_setup.work_ns if of_setup else 0,
        setup_lines=_places(view, set_up) if set_up else [],
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


def _places(view: View, table: Table) -> list[PlaceAnswer]:
    return [
        PlaceAnswer(
            row["file"] if row["line"] else "",
            row["line"],
            (row["line"] and view.text(row["file"], row["line"])) or row["function"],
            **{name: row[name] for name in ("spent_on", "time_ns", "gpu_ns")},
        )
        for row in table.rows
    ]
