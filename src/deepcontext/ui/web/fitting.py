"""Which profiles of a job a one-file page holds: all of them, or as many as its size allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.errors import DeepContextError
from deepcontext.ui.format import format_bytes, format_count
from deepcontext.ui.web.jobs import renumbered
from deepcontext.ui.web.open_profiles import OpenProfiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepcontext.ui.web.open_profiles import OpenProfile

MOST_BYTES: Final = 16 * 1024 * 1024
# After this number of profiles that do not fit, the page counts as full, and no more are read.
_MOST_MISFITS: Final = 8


def fitting(
    profiles: OpenProfiles, size_of: Callable[[OpenProfiles], int], most_bytes: int = MOST_BYTES
) -> tuple[OpenProfiles, tuple[str, ...]]:
    """Return the profiles that fit, and notes about the others.

    Profiles that are already read are never left out. Profiles on demand are added in this order: the
    unions of a job, then its processes by processor time, largest first.

    Args:
        profiles: the profiles.
        size_of: returns how many bytes some profiles take.
        most_bytes: largest size of all profiles on demand.
    """
    wanted = _on_demand(profiles)
    if not wanted:
        return profiles, ()
    loaded = profiles.loaded()
    kept = {index: profiles.get(index) for index in loaded}
    left_bytes, unreadable, misfits = most_bytes, 0, 0
    for index in wanted:
        try:
            opened = profiles.get(index)
            size = size_of(_only([opened], profiles))
        except DeepContextError:
            unreadable += 1
            continue
        if size <= left_bytes:
            kept[index] = opened
            left_bytes -= size
        else:
            misfits += 1
        if misfits == _MOST_MISFITS:
            break
    indices = sorted(kept)
    jobs = [renumbered(job, {old: new for new, old in enumerate(indices)}) for job in profiles.jobs]
    shown = OpenProfiles(
        [kept[index] for index in indices],
        source_text=profiles.source_text,
        peaks=profiles.peaks,
        jobs=jobs,
        compared=profiles.compared,
    )
    left_out = len(profiles) - len(indices) - unreadable
    notices = []
    if left_out:
        notices.append(
            f"{format_count(left_out)} of {format_count(len(profiles))} profiles are not in this page, "
            f"which holds up to {format_bytes(most_bytes)} of processes; 'deepcontext view' of the run "
            "directory shows them"
        )
    if unreadable:
        notices.append(f"{format_count(unreadable)} profiles could not be read or put together")
    return shown, tuple(notices)


def _on_demand(profiles: OpenProfiles) -> list[int]:
    loaded = set(profiles.loaded())
    by_need = [role.file for job in profiles.jobs for role in job.roles]
    rows = [row for job in profiles.jobs for row in job.processes]
    by_need += [row.file for row in sorted(rows, key=lambda row: -row.cpu_ns)]
    return [index for index in dict.fromkeys(by_need) if index >= 0 and index not in loaded]


def _only(opened: list[OpenProfile], profiles: OpenProfiles) -> OpenProfiles:
    return OpenProfiles(opened, source_text=profiles.source_text, peaks=profiles.peaks)
