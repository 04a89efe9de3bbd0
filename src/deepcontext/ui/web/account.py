"""The account of elapsed time for the page's first view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.verdict import leading_lines, leading_set_up, verdicts
from deepcontext.profiler.views.layers import Layer
from deepcontext.ui.account_texts import (
    Group,
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
    PartAnswer,
    PlaceAnswer,
    VerdictAnswer,
)

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import Account, GpuAccount
    from deepcontext.ui.sections.table import Table

_MOST_LINES: Final = 8
_LEAST_PART: Final = 0.01
# Parts of a bar have the colours of layers.
_METRICS: Final = {"waiting": "sampled_wait_time_ns"}
_LAYERS: Final = {
    "set-up": Layer.SCOPE,
    "operators": Layer.OPERATOR,
    "Python": Layer.PYTHON,
    "native code": Layer.NATIVE,
    "waiting": Layer.GPU,
}


def account_answer(profile: Profile, *, with_text: bool) -> AccountAnswer:
    """Return the account of a profile; functions stand in place of the text of lines without `with_text`."""
    basis = basis_of(profile)
    profile, found = basis.profile, account(basis.profile)
    leading, of_setup = leading_lines(found), leading_set_up(basis)
    view = View(profile, default_metric(profile), _MOST_LINES)
    set_up = tables.set_up(view)

    def places(table: Table) -> list[PlaceAnswer]:
        return _places(view, table, with_text=with_text)

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
        lines=places(tables.lines(view)),
        others=places(tables.other_threads(view)),
        setup_whole_ns=of_setup.work_ns if of_setup else 0,
        setup_lines=places(set_up) if set_up else [],
    )


def _groups(found: Account) -> list[PartAnswer]:
    return [
        PartAnswer(
            f"{group.name} ({parts})" if (parts := _parts(group)) else group.name,
            round(group.share * found.whole_ns),
            _LAYERS.get(group.name, Layer.ROOT).label,
            _METRICS.get(group.name, ""),
        )
        for group in groups_of(found)
        if group.share
    ]


def _parts(group: Group) -> str:
    return ", ".join(
        f"{name} {format_share(share)}" for name, share in group.parts if share >= _LEAST_PART
    )


def _gpu(gpu: GpuAccount | None) -> list[PartAnswer]:
    if gpu is None or not gpu.is_idle_known:
        return []
    return [
        PartAnswer("kernels", gpu.busy_ns - gpu.copy_ns, Layer.GPU.label, "gpu_time_ns"),
        PartAnswer("copies", gpu.copy_ns, Layer.COMPILED.label, "gpu_time_ns"),
        PartAnswer("gaps between queued work", gpu.gap_ns, Layer.NATIVE.label, "gpu_gap_ns"),
        PartAnswer("idle: nothing queued", gpu.idle_ns, Layer.ROOT.label, "gpu_idle_ns"),
    ]


def _places(view: View, table: Table, *, with_text: bool) -> list[PlaceAnswer]:
    return [
        PlaceAnswer(
            row["file"] if row["line"] else "",
            row["line"],
            (with_text and row["line"] and view.text(row["file"], row["line"])) or row["function"],
            **{name: row[name] for name in ("spent_on", "time_ns", "gpu_ns")},
        )
        for row in table.rows
    ]
