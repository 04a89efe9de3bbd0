"""What the report and the page write about ranks: notes above tables, names of groups, ends."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries import ranks
from deepcontext.ui.format import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.job.rank_row import RankRow
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.communication import Exchange
    from deepcontext.profiler.summaries.late_ranks import LateRanks

RANKS: Final = "working: in operators, and running between them; ranks wait for slower ones"
COMPILED: Final = "waiting for slower ranks, at least: more than the rank with the least time"
COMMUNICATION: Final = (
    "transfer: of the ranks that came last; waiting for them: mean over the members; exposed: not "
    "beside computing; bandwidths as nccl-tests has them"
)
LINES: Final = "elapsed time of each rank, without deeper lines"
_ENDED: Final = {"exit": "", "snapshot": "running or killed"}
_FEW: Final = 2


def ranks_fact(profile: Profile) -> str:
    """Return ``"1,024 on 128 hosts, 9.80 s to 10.2 s elapsed"``; "" for one process."""
    rows = ranks.by_rank(profile)
    if not rows:
        return ""
    hosts = len({row.hostname for row in rows if row.hostname})
    least, most = (format_ns(of(row.wall_ns for row in rows)) for of in (min, max))
    on = "host" if hosts == 1 else "hosts"
    facts = [f"{format_count(len(rows))} on {format_count(hosts)} {on}" if hosts else ""]
    facts.append(f"{least} elapsed" if least == most else f"{least} to {most} elapsed")
    ends = Counter(_ended(row) for row in rows if _ended(row)).most_common(2)
    facts += [f"{format_count(count)} {end}" for end, count in ends]
    return ", ".join(filter(None, facts))


def ended_text(row: RankRow) -> str:
    """Return how a rank ended, or else what it lacks; "" if there is nothing to say."""
    return _ended(row) or (f"lacks {', '.join(row.lacking)}" if row.lacking else "")


def _ended(row: RankRow) -> str:
    return row.ended or _ENDED.get(row.exit_reason, row.exit_reason)


def late_text(found: LateRanks) -> str:
    """Return what late ranks are known from, or why nothing is known."""
    if found.reason:
        return found.reason
    of = "all" if found.compared == found.collectives else f"{found.compared:,} of"
    groups = "" if found.groups == 1 else f" of {found.groups} groups"
    left_out = "" if not found.groups_left_out else f"; {found.groups_left_out} groups left out"
    return (
        f"from {of} {found.collectives:,} collectives{groups}{left_out}; the last to come makes the "
        "others wait"
    )


def sized_text(row: Exchange) -> str:
    """Return ``"allreduce 16.0 KiB"``."""
    return f"{row.operation} {format_bytes(row.size_bytes)}" if row.size_bytes else row.operation


def group_text(row: Exchange) -> str:
    """Return ``"group 1 of ranks 0, 2"``."""
    name = row.group if row.is_function else f"group {row.group}"
    return f"{name} of ranks {_numbers(row.members)}"


def last_text(row: Exchange) -> str:
    """Return ``"rank 2, 53%"``: the rank that came last most often."""
    return f"rank {row.last}, {row.last_share:.0%}"


def _numbers(members: Sequence[int]) -> str:
    """Return ``"0 to 3"`` or ``"0, 2"``."""
    if len(members) > _FEW and members[-1] - members[0] == len(members) - 1:
        return f"{members[0]} to {members[-1]}"
    return ", ".join(map(str, members))
