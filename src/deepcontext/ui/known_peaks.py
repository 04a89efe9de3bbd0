"""A profile with the peaks that this machine knows of it: those of a file, or those measured here before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.profiler.format import peaks

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile


def with_known_peaks(profile: Profile, file: str | None) -> Profile:
    """Return a profile with the peaks of a file; without one, with those measured on the same machine.

    Raises:
        UserError: the file cannot be read.
    """
    from deepcontext.profiler.summaries.roof import with_peaks  # noqa: PLC0415  imports numpy

    if file is not None:
        return with_peaks(profile, peaks.read_file(file), replace=True)
    run = profile.run
    known = [each for each in peaks.measured() if each.is_of(run.cpu_model, run.cpu_count)]
    return with_peaks(profile, known, replace=False)
