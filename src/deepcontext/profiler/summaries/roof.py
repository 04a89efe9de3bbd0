"""The roof of a profile: what the machine that ran it computes and moves a second at most.

Peaks of another machine are never used: those of a CPU belong to its model, to the number of processors
and to the number of threads that torch computed with; those of a GPU to its name. Does not measure.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format import peaks
from deepcontext.profiler.summaries.gpu_peaks import PUBLISHED
from deepcontext.profiler.summaries.jax import programs as jax_programs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    import numpy.typing as npt

    from deepcontext.profiler.format.peaks import DevicePeaks
    from deepcontext.profiler.model.profile import Profile as WholeProfile
    from deepcontext.profiler.model.profile_model import ProfileModel as Profile

    Floats = npt.NDArray[np.float64]
    Kind = TypeVar("Kind", bound=WholeProfile)


@dataclass(frozen=True, slots=True)
class Roof:
    """Peak rates, and where they are from.

    Attributes:
        peaks: the rates.
        origin: "measured", "published" or "given".
    """

    peaks: DevicePeaks
    origin: str

    def least_ns(self, flops: Floats, moved: Floats, types: Sequence[str]) -> Floats:
        """Return the time that operators need at the roof, ns, shape (operators,), float64.

        Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009: attainable flop/s is the
        smaller of peak flop/s and bandwidth times flop/byte. NaN where a rate is not known.

        Args:
            flops: floating-point operations of each, shape (operators,).
            moved: bytes of each, NaN where not known, shape (operators,).
            types: element type of each.
        """
        rates = self.peaks.flops_per_second
        rate = np.array([rates.get(kind, np.nan) for kind in types], np.float64)
        computing = np.divide(flops, rate, out=np.zeros_like(flops), where=flops > 0)
        moving = np.where(np.isnan(moved), 0.0, moved) / (self.peaks.bytes_per_second or np.nan)
        return np.asarray(np.maximum(computing, moving) * 1e9)


def roof_of(profile: Profile, *, on_gpu: bool, threads: int = 0) -> Roof | None:
    """Return the roof for operators on the CPU, or on the GPUs of a profile; None if it is not known.

    Args:
        profile: the profile.
        on_gpu: whether the operators ran on the GPUs.
        threads: number of threads that computed on the CPU; 0 for that of torch.
    """
    known, of_torch = peaks.decode_section(profile.sections.get(peaks.SECTION, b""))
    if on_gpu:
        names = _gpu_names(profile)
        if len(names) != 1:
            return None  # several kinds share the operators
        (name,) = names
        given = next((each for each in known if each.device == name), None)
        published = PUBLISHED.get(name)
        if given is not None:
            return Roof(given, "given")
        return (
            None
            if published is None
            else Roof(dataclasses.replace(published, device=name), "published")
        )
    run = profile.run
    for each in known:
        if each.is_of(run.cpu_model, run.cpu_count) and each.threads == (threads or of_torch):
            return Roof(each, "measured" if each.spread else "given")
    return None


def with_peaks(profile: Kind, given: Sequence[DevicePeaks], *, replace: bool) -> Kind:
    """Return a profile with other peaks; those of other machines have no effect.

    Args:
        profile: the profile.
        given: the peaks.
        replace: whether they replace what the profile holds; without, they are used where it holds none.
    """
    payload = profile.sections.get(peaks.SECTION)
    is_jax = jax_programs.SECTION in profile.sections
    if payload is None and not is_jax and not _gpu_names(profile):
        return profile  # recorded without shapes: nothing to compare
    known, threads = peaks.decode_section(payload or b"")
    if not given or (known and not replace):
        return profile
    return profile.with_section(peaks.SECTION, peaks.encode_section(given, threads))


def _gpu_names(profile: Profile) -> set[str]:
    names: set[str] = set()
    for vendor in ("nvidia", "amd"):
        payload = profile.sections.get(f"gpu_{vendor}")
        try:
            devices = json.loads(payload)["devices"] if payload else ()
            names |= {str(each.get("name", "")) for each in devices}
        except (ValueError, KeyError, TypeError, AttributeError):
            names.add("")  # a section of another version
    return names
