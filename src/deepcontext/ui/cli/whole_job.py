"""All ranks of a run directory as one profile: what `deepcontext merge` wrote there, or merged now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import DeepContextError, UserError
from deepcontext.profiler.format import run_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile

# Merging more ranks takes longer than a reader of a report waits.
MOST_MERGED: Final = 64
_FEWEST: Final = 2


def whole_job(profiles: Sequence[Profile], run: Path) -> tuple[Profile | None, str]:
    """Return one profile of all ranks.

    Args:
        profiles: what the run directory holds.
        run: the run directory.

    Returns:
        the profile, None if there are no ranks or they cannot be merged; and a notice for the user.
    """
    from deepcontext.profiler.model.job_ranks import last_attempt, ranks_of  # noqa: PLC0415  numpy

    ranks = last_attempt(ranks_of({profile.source: profile for profile in profiles}))
    if len(ranks) < _FEWEST:
        return None, ""
    merged = merged_before(run, list(ranks))
    if merged is not None:
        return merged, merged_text(merged)
    if len(ranks) > MOST_MERGED:
        return None, f"merge its {len(ranks)} ranks with 'deepcontext merge {run}'"
    from deepcontext.profiler.model.job.fold import merge  # noqa: PLC0415  imports numpy

    try:
        return merge(ranks), f"its {len(ranks)} ranks together, times are sums"
    except UserError as error:
        return None, f"its ranks cannot be merged: {error}"


def merged_text(merged: Profile) -> str:
    """Return what a profile is that `merged_before` found."""
    return f"its {merged.run.ranks} ranks together, as merged before"


def merged_before(run: Path, files: Sequence[str | Path]) -> Profile | None:
    """Return the profile that `deepcontext merge` left in the directory, None if a file is newer.

    Loads none of the files.
    """
    from deepcontext.profiler.model.profile import Profile  # noqa: PLC0415  imports numpy

    path = run / run_directory.MERGED
    try:
        merged_ns = path.stat().st_mtime_ns
        if any(Path(file).stat().st_mtime_ns > merged_ns for file in files):
            return None
        return Profile.load(path)
    except (OSError, DeepContextError):
        return None
