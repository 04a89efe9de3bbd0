"""A profile with shapes keeps the peaks that were measured on its machine, and torch's threads."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format import peaks
from deepcontext.profiler.format.peaks import DevicePeaks
from deepcontext.profiler.summaries.efficiency import efficiency

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DevicePeaks:
    """Return peaks of this machine, kept beside those of another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model, cores = peaks.this_cpu()
    own = DevicePeaks(model, cores, torch.get_num_threads(), {"f32": 1e12}, 1e11, {"f32": 0.0})
    peaks.keep([own, dataclasses.replace(own, device="Another CPU")])
    return own


def multiply() -> None:
    for _ in range(3):
        torch.mm(torch.ones(64, 64), torch.ones(64, 64))


def test_a_profile_with_shapes_keeps_its_machines_peaks(record: Any, mine: DevicePeaks) -> None:
    profile = record(multiply, shapes=True).profile
    found = peaks.decode_section(profile.sections[peaks.SECTION])
    assert found == ((mine,), torch.get_num_threads())
    use = efficiency(profile)
    assert use is not None
    assert use.roof is not None
    assert use.roof.peaks == mine
    by_name = {row.name: row.work for row in use.operators}
    work = by_name["aten::mm(f32[64, 64], f32[64, 64])"]
    least_ns = max(2 * 64**3 / 1e12, 3 * 4 * 64 * 64 / 1e11) * 1e9
    assert work.of_peak == pytest.approx(3 * least_ns / work.time_ns)


def test_a_profile_without_shapes_keeps_none(record: Any, mine: DevicePeaks) -> None:
    assert mine in peaks.measured()
    assert peaks.SECTION not in record(multiply).profile.sections
