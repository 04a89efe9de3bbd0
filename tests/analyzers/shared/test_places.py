"""Facts of a place in the steady state of a stored run."""

from __future__ import annotations

from pathlib import Path

from deepcontext.analyzers.shared.places import Places
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.basis import Part, basis_of

PROFILES = Path(__file__).parents[2] / "real_programs" / "profiles"


def test_sizes_of_allocations_are_known_in_the_steady_state() -> None:
    basis = basis_of(Profile.load(PROFILES / "torch_transformer.dcprof"))
    assert basis.part is Part.STEADY
    assert Places.of(basis.profile).largest(backward=False).any()
