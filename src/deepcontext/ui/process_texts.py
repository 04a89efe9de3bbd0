"""Names of the processes of a job, as the report, the page and the command line write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.summaries.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.summaries.processes import Process


def role_text(process: Process) -> str:
    """Return the role, with the number of a rank."""
    if process.rank is None:
        return process.role.value
    text = f"rank {process.rank}"
    attempt = process.profile.run.attempt
    text += f" (attempt {attempt})" if attempt else ""
    return text if process.role is Role.RANK else f"{process.role.value}, {text}"


def count_text(role: Role, count: int) -> str:
    """Return ``4 DataLoader workers``."""
    return f"{count} {role.value if count == 1 else role.plural}"


def ends_text(ends: Mapping[str, int]) -> str:
    """Return how several processes ended: ``2 killed by SIGKILL, 1 exited 3``."""
    return ", ".join(f"{count} {end}" for end, count in ends.items() if end)
