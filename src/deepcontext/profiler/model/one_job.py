"""Whether profiles come from processes of one job: the same program at the same time.

Does not merge the profiles (`job/`). A fact that one profile lacks is not compared.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from deepcontext.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.run_info import RunInfo

_NUMBER = re.compile(r"\b[0-9a-f]{16,}\b|\d+")  # or an identifier, in hexadecimal
_MOST_SHOWN = 80


def check_one_job(runs: Mapping[str, RunInfo]) -> None:
    """Compare all runs with the first one.

    Args:
        runs: runs of the profiles, by the name used in errors.

    Raises:
        UserError: a profile has another job, program or time; the message says what differs.
    """
    (first_name, first), *others = runs.items()
    for name, run in others:
        difference = _other_job(first, run) or _other_program(first, run) or _other_time(first, run)
        if difference:
            raise UserError(
                f"'{first_name}' and '{name}' belong to different jobs: {difference}; name profiles "
                "of one job, or merge unrelated profiles with --unrelated"
            )


def _other_job(first: RunInfo, second: RunInfo) -> str:
    if first.ranks and second.ranks and first.ranks != second.ranks:
        return f"the first has {first.ranks} processes, the second {second.ranks}"
    return ""


def _other_program(first: RunInfo, second: RunInfo) -> str:
    """Compare scripts, and arguments too unless a launcher counted both processes as ranks.

    Numbers and identifiers are left out, because they differ by process: "--rank 1", "pipe_handle=17",
    "--worker-id=ec332b4c82f586931c1d".
    """
    is_same = first.script == second.script
    are_ranks = first.script and first.ranks and second.ranks
    if is_same and not are_ranks and first.command and second.command:
        one, other = (
            [_NUMBER.sub("N", word) for word in run.command[1:]] for run in (first, second)
        )
        is_same = one == other
    return "" if is_same else f"the first ran {_called(first)}, the second {_called(second)}"


def _called(run: RunInfo) -> str:
    # Without the interpreter.
    words = shlex.join(run.command[1:]) or run.script or "an unknown program"
    return f"'{words if len(words) <= _MOST_SHOWN else words[:_MOST_SHOWN] + '...'}'"


def _other_time(first: RunInfo, second: RunInfo) -> str:
    """Compare times that come from the same clock."""
    if first.hostname != second.hostname or not first.start_unix_ns or not second.start_unix_ns:
        return ""
    early, late = sorted((first, second), key=lambda run: run.start_unix_ns)
    gap_s = (late.start_unix_ns - early.start_unix_ns - early.wall_ns) / 1e9
    return f"one ended {gap_s:,.1f} s before the other began" if gap_s > 0 else ""
