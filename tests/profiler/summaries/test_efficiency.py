"""How far lines are from the peaks of their own machine, and of no other."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.peaks import SECTION, DevicePeaks, encode_section
from deepcontext.profiler.model.run_info import ALL_RANKS, RunInfo
from deepcontext.profiler.summaries.arithmetic import arithmetic
from deepcontext.profiler.summaries.efficiency import efficiency
from deepcontext.profiler.summaries.gpu_peaks import PUBLISHED
from deepcontext.profiler.summaries.roof import roof_of, with_peaks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.operator_work import Work
    from tests.conftest import MakeProfile

# 1 flop a ns in f32, half as many in f64; 1 byte a ns.
PEAKS = DevicePeaks("A CPU", 4, 2, {"f32": 1e9, "f64": 5e8}, 1e9, {"f32": 0.0})
RUN = RunInfo(cpu_model="A CPU", cpu_count=4, steps=2, wall_ns=10_000)
FRAMES = [
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.PYTHON, "multiply", "/p.py", 3),
    Frame(FrameKind.OPERATOR, "aten::mm(f32[20, 30], f32[30, 40])"),  # 48,000 flop
    Frame(FrameKind.OPERATOR, "aten::mm(f64[2, 3], f64[3, 4])"),  # 48 flop, 208 bytes
    Frame(FrameKind.PYTHON, "move", "/p.py", 9),
    Frame(FrameKind.OPERATOR, "aten::neg(f32[100])"),  # 800 bytes
    Frame(FrameKind.OPERATOR, "aten::cat()"),
    Frame(FrameKind.OPERATOR, "aten::mm(i8[2, 3], i8[3, 4])"),  # no peak
]
PARENTS = [0, 0, 1, 1, 0, 4, 4, 4]
CALLS: dict[int, Sequence[int]] = {
    2: [100_000],
    3: [4_160],
    5: [40_000, 40_000],
    6: [5_000] * 3,
    7: [500],
}


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    made = make_profile(
        PARENTS,
        FRAMES,
        phases=[Phase.NONE] * len(FRAMES),
        call_samples_ns=CALLS,
        step_samples_ns=[200_000],
        run=RUN,
    )
    return made.with_section(SECTION, encode_section([PEAKS], 2))


def works(profile: Profile) -> dict[str, Work]:
    found = efficiency(profile)
    assert found is not None
    return {row.name: row.work for row in found.operators}


def test_an_operator_is_compared_with_the_lower_of_both_roofs(profile: Profile) -> None:
    found = works(profile)
    computing = found["aten::mm(f32[20, 30], f32[30, 40])"]
    assert computing.of_peak == pytest.approx(48_000 / 100_000)
    assert computing.intensity == pytest.approx(48_000 / (4 * (600 + 1200 + 800)))
    small = found["aten::mm(f64[2, 3], f64[3, 4])"]
    assert small.of_peak == pytest.approx(208 / 4_160)
    moving = found["aten::neg(f32[100])"]
    assert (moving.flops, moving.bytes) == (0, 1600)
    assert moving.of_peak == pytest.approx(1_600 / 80_000)
    assert moving.bytes_per_second == pytest.approx(1600 / 80_000 * 1e9)


def test_a_type_without_a_peak_has_no_share_and_is_left_out_of_sums(profile: Profile) -> None:
    assert works(profile)["aten::mm(i8[2, 3], i8[3, 4])"].of_peak is None
    found = efficiency(profile)
    assert found is not None
    lines = {row.line: row.work for row in found.lines}
    assert list(lines) == [3, 9]
    assert lines[9].of_peak == pytest.approx(1_600 / 80_000)
    assert lines[9].time_ns == 80_500


def test_unknown_operators_are_told_with_their_share(profile: Profile) -> None:
    found = efficiency(profile)
    assert found is not None
    assert [(each.name, each.calls, each.time_ns) for each in found.unknown] == [
        ("aten::cat", 3, 15_000)
    ]
    assert found.unknown_share == pytest.approx(15_000 / (15_000 + 184_660))


def test_utilization_is_of_the_time_between_steps(profile: Profile) -> None:
    found = arithmetic(profile)
    assert found is not None
    assert found.mfu is None  # i8 has no peak
    given = dataclasses.replace(PEAKS, flops_per_second={**PEAKS.flops_per_second, "i8": 1e9})
    found = arithmetic(with_peaks(profile, [given], replace=True))
    assert found is not None
    assert found.mfu == pytest.approx((48_000 + 96 + 48) / 2 / 200_000)


@pytest.mark.parametrize(
    "change", [{"device": "Another CPU"}, {"cores": 8}, {"threads": 1}, {"threads": 4}]
)
def test_peaks_of_another_machine_or_of_other_threads_are_not_used(
    profile: Profile, change: dict[str, object]
) -> None:
    other = dataclasses.replace(PEAKS, **change)  # type: ignore[arg-type]
    found = with_peaks(profile, [other], replace=True)
    assert roof_of(found, on_gpu=False) is None
    assert all(work.of_peak is None for work in works(found).values())


def test_what_a_profile_holds_is_not_replaced_by_the_readers_peaks(profile: Profile) -> None:
    faster = dataclasses.replace(PEAKS, bytes_per_second=1e12)
    assert with_peaks(profile, [faster], replace=False) is profile
    roof = roof_of(with_peaks(profile, [faster], replace=True), on_gpu=False)
    assert roof is not None
    assert roof.peaks.bytes_per_second == 1e12


def test_several_ranks_have_no_utilization(profile: Profile) -> None:
    run = dataclasses.replace(profile.run, rank=ALL_RANKS)
    found = arithmetic(dataclasses.replace(profile, run=run))
    assert found is not None
    assert found.mfu is None


def on_gpus(profile: Profile, *names: str) -> Profile:
    return profile.with_section(
        "gpu_nvidia", json.dumps({"devices": [{"name": name} for name in names]}).encode()
    )


def test_a_gpu_is_known_by_its_name(profile: Profile) -> None:
    roof = roof_of(on_gpus(profile, "NVIDIA H200", "NVIDIA H200"), on_gpu=True)
    assert roof is not None
    assert (roof.origin, roof.peaks.bytes_per_second) == ("published", 4.8e12)
    assert roof_of(on_gpus(profile, "NVIDIA H200", "NVIDIA L40S"), on_gpu=True) is None
    assert roof_of(on_gpus(profile, "NVIDIA H2"), on_gpu=True) is None
    given = with_peaks(on_gpus(profile, "X"), [DevicePeaks("X", 0, 0, {}, 7.0)], replace=True)
    roof = roof_of(given, on_gpu=True)
    assert roof is not None
    assert (roof.origin, roof.peaks.bytes_per_second) == ("given", 7.0)


def test_sections_of_other_versions_give_no_roof(profile: Profile) -> None:
    for payload in (b"{", b"[]", b'{"devices": [3]}'):
        assert roof_of(profile.with_section("gpu_nvidia", payload), on_gpu=True) is None


def test_published_peaks_are_dense_and_in_order() -> None:
    for name, found in PUBLISHED.items():
        rates = found.flops_per_second
        assert rates.get("f64", 0.0) <= rates["f32"] < rates["bf16"] == rates["f16"], name
        assert 5e11 < found.bytes_per_second < 1e13, name


def test_without_shapes_or_types_nothing_is_said(make_profile: MakeProfile) -> None:
    for name in ("aten::mm", "aten::mm([2, 3], [3, 4])"):
        frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.OPERATOR, name)]
        assert efficiency(make_profile([0, 0], frames, call_samples_ns={1: [5]})) is None
