"""What is known about one rank of a job besides its tree: where and how long it ran, how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.frame import MAIN_THREAD, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model import elapsed
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.still_running import end_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile_model import ProfileModel

_SNAPSHOT: Final = "snapshot"


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank; "" and 0 mean unknown.

    Attributes:
        rank: number of the rank.
        of: ranks of the job.
        name: file that the rank's profile was read from.
        content: hash of that file, hexadecimal.
        hostname: name of the machine.
        pid: process id.
        start_unix_ns: start of recording, ns since 1970.
        wall_ns: elapsed time.
        cpu_user_ns: user CPU time of the process.
        cpu_system_ns: system CPU time of the process.
        peak_rss_bytes: largest resident set.
        exit_reason: how the process ended, as in `RunInfo`.
        ended: how a process without a closed profile ended, as seen by the machine that joined the ranks.
        steps: number of steps.
        operator_ns: host time in operators.
        running_ns: processor time between operators, on any thread, sampled.
        waiting_ns: elapsed time between operators in which the main thread waited, sampled.
        nodes: nodes of the rank's tree.
        lacking: collectors that did not fully run.
        notes: number of warnings of the rank's profile.
        totals: sum of each `SUM` metric over the rank's tree.
        before: what is known of the windows before the steady state (`steady.facts`); empty without one.
        steady: the same of the steady state, with `rank_times`.
    """

    rank: int
    of: int = 0
    name: str = ""
    content: str = ""
    hostname: str = ""
    pid: int = 0
    start_unix_ns: int = 0
    wall_ns: int = 0
    cpu_user_ns: int = 0
    cpu_system_ns: int = 0
    peak_rss_bytes: int = 0
    exit_reason: str = ""
    ended: str = ""
    steps: int = 0
    operator_ns: int = 0
    running_ns: int = 0
    waiting_ns: int = 0
    nodes: int = 0
    lacking: tuple[str, ...] = ()
    notes: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)
    steady: Mapping[str, Any] = field(default_factory=dict)


def rank_row(
    profile: ProfileModel, rank: int, totals: Mapping[str, int], *, name: str, content: str
) -> RankRow:
    """Return the row of one rank's profile; `totals`, `name` and `content` as in `RankRow`."""
    run, trust, times = profile.run, profile.trust, rank_times(profile)
    faulty = {Status.DEGRADED, Status.UNAVAILABLE}
    return RankRow(
        rank=rank,
        of=run.ranks,
        name=name,
        content=content,
        hostname=run.hostname,
        pid=run.pid,
        start_unix_ns=run.start_unix_ns,
        wall_ns=run.wall_ns,
        cpu_user_ns=run.cpu_user_ns,
        cpu_system_ns=run.cpu_system_ns,
        peak_rss_bytes=run.peak_rss_bytes,
        exit_reason=run.exit_reason,
        ended=end_text(run) if run.exit_reason == _SNAPSHOT else "",
        steps=run.steps,
        operator_ns=times["operator_ns"],
        running_ns=times["running_ns"],
        waiting_ns=times["waiting_ns"],
        nodes=len(profile.tree),
        lacking=tuple(each.name for each in trust.collectors if each.status in faulty),
        notes=len(trust.notes),
        totals=totals,
    )


def rank_times(profile: ProfileModel) -> dict[str, int]:
    """Return the times of a row."""
    in_operators = elapsed.in_operators(profile.frames, profile.tree, profile.metrics)
    return {
        "operator_ns": int(in_operators.sum()),
        "running_ns": int(exclusive_or_zeros(profile, SAMPLED_CPU_TIME_NS.name).sum()),
        "waiting_ns": _waiting_ns(profile),
    }


def _waiting_ns(profile: ProfileModel) -> int:
    waited, tree = exclusive_or_zeros(profile, SAMPLED_WAIT_TIME_NS.name), profile.tree
    return sum(
        int(waited[node : int(tree.subtree_end[node])].sum())
        for node in tree.children(0)
        if (frame := profile.frame(node)).kind is FrameKind.THREAD and frame.name == MAIN_THREAD
    )
