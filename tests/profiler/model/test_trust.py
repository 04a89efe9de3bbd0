"""Warnings that a reader needs before trusting a figure."""

from __future__ import annotations

from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.trust import CollectorReport, TrustReport


def test_warnings_are_the_notes_and_the_degraded_collectors() -> None:
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
