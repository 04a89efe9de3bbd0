"""What a person must be told before believing a number."""

from __future__ import annotations

from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.trust import CollectorReport, TrustReport


def test_warnings_are_the_notes_and_what_saw_less_than_asked_for() -> None:
    trust = TrustReport(
        collectors=(
            CollectorReport("python", Status.RAN),
            CollectorReport("torch", Status.DEGRADED, "no backward links"),
            CollectorReport("nvidia", Status.UNAVAILABLE),
            CollectorReport("jax", Status.OFF, "not imported"),
        ),
        notes=("3 records were dropped",),
    )
    first, torch, nvidia = trust.warnings
    assert first == "3 records were dropped"
    assert torch == "torch: degraded, no backward links"
    assert nvidia.startswith("nvidia: unavailable")


def test_a_whole_profile_has_no_warnings() -> None:
    assert TrustReport(collectors=(CollectorReport("torch", Status.RAN),)).warnings == ()
