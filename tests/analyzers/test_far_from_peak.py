"""Each reason on a made profile, and what is no finding; a real program is among the cases."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import Severity, run_analyzers
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import GPU_TIME_NS
from deepcontext.profiler.format.peaks import SECTION, DevicePeaks, encode_section
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

RUN = RunInfo(cpu_model="A CPU", cpu_count=1, wall_ns=5_000_000_000)
RATES = {"f32": 1e11, "f64": 5e10, "bf16": 1e10, "f16": 9e10, "i64": 1e9}
MS = 1_000_000


def profile_of(
    make_profile: MakeProfile,
    calls_ns: Mapping[str, Sequence[int]],
    rates: Mapping[str, float] = RATES,
) -> Profile:
    """Return a profile of operators of one line, on a machine that copies 10 GB/s."""
    names = list(calls_ns)
    frames = [Frame(FrameKind.ROOT, ""), Frame(FrameKind.PYTHON, "step", "/p.py", 7)]
    frames += [Frame(FrameKind.OPERATOR, name) for name in names]
    samples = {index + 2: calls_ns[name] for index, name in enumerate(names)}
    profile = make_profile(
        [0, 0, *[1] * len(names)],
        frames,
        call_samples_ns=samples,
        host_time_ns={node: sum(times) for node, times in samples.items()},
        run=RUN,
    )
    peaks = DevicePeaks("A CPU", 1, 1, rates, 1e10, {"f32": 0.0})
    return profile.with_section(SECTION, encode_section([peaks], 1))


def found_in(profile: Profile) -> list[Finding]:
    return list(run_analyzers(profile, only=["far_from_peak"]))


# 2 GFLOP: 20 ms in f32, 200 ms in bf16.
NARROW = "aten::mm(bf16[1000, 1000], bf16[1000, 1000])"


def test_a_narrow_type_without_a_fast_path(make_profile: MakeProfile) -> None:
    (finding,) = found_in(profile_of(make_profile, {NARROW: [210 * MS] * 5}))
    assert finding.title.startswith("products of bfloat16 numbers take 100% of the time, at 9.52")
    assert "float32: this machine does so 10 times as fast" in finding.advice
    assert finding.gain is not None
    assert finding.gain.upper_bound == 5 * 190 * MS
    assert finding.evidence["of_peak_share"] == pytest.approx(200 / 210)
    assert finding.severity is Severity.HIGH


def test_a_type_with_a_fast_path_is_no_finding(make_profile: MakeProfile) -> None:
    for kind in ("f32", "f64", "f16"):
        name = NARROW.replace("bf16", kind)
        assert found_in(profile_of(make_profile, {name: [210 * MS] * 5})) == []


def test_convolutions_of_a_slow_type_are_found_too(make_profile: MakeProfile) -> None:
    name = (
        "aten::convolution_backward(bf16[8, 64, 32, 32], bf16[8, 64, 34, 34], bf16[64, 64, 3, 3])"
    )
    (finding,) = found_in(profile_of(make_profile, {name: [400 * MS] * 5}))
    assert "bfloat16" in finding.title


# 2.6 MFLOP and 3.8 MB: 0.38 ms at the bandwidth.
SMALL = "aten::bmm(f32[20000, 4, 4], f32[20000, 4, 4])"


def test_small_matrices_are_named_with_their_sizes(make_profile: MakeProfile) -> None:
    (finding,) = found_in(profile_of(make_profile, {SMALL: [9 * MS] * 10}))
    assert "products of 4 x 4 with 4 x 4 matrices take 100% of the time" in finding.title
    assert "instead of expanding" in finding.advice
    assert finding.gain is not None
    assert finding.gain.upper_bound == pytest.approx(10 * (9 - 0.384) * MS, rel=0.001)


@pytest.mark.parametrize(
    ("name", "calls_ns"),
    [
        (SMALL, [1 * MS] * 10),  # near enough
        (SMALL, [1 * MS, *[90 * MS] * 9]),  # slow for another reason than its sizes
        (SMALL, [9 * MS] * 2),  # too few calls
        ("aten::bmm(f32[20, 4, 4], f32[20, 4, 4])", [40_000] * 1000),  # launch cost
        ("aten::mm(f32[64, 64], f32[64, 64])", [90 * MS] * 10),  # no reason is known
        ("aten::neg(f32[100])", [90 * MS] * 10),
        ("aten::mm(c64[4, 4], c64[4, 4])", [90 * MS] * 10),  # no peak of the type
    ],
)
def test_what_is_no_finding(make_profile: MakeProfile, name: str, calls_ns: Sequence[int]) -> None:
    assert found_in(profile_of(make_profile, {name: calls_ns})) == []


def test_a_small_share_of_the_time_is_no_finding(make_profile: MakeProfile) -> None:
    calls = {SMALL: [9 * MS] * 10, "aten::mm(f32[64, 64], f32[64, 64])": [100 * MS] * 10}
    assert found_in(profile_of(make_profile, calls)) == []


def test_without_peaks_of_this_machine_nothing_is_said(make_profile: MakeProfile) -> None:
    profile = profile_of(make_profile, {NARROW: [210 * MS] * 5})
    other = dataclasses.replace(profile.run, cpu_model="Another CPU")
    assert found_in(dataclasses.replace(profile, run=other)) == []


def on_gpu(profile: Profile, times_ns: Mapping[int, int]) -> Profile:
    """Return the same with a kernel's time at each operator, on an H100."""
    nodes = np.array(list(times_ns), np.uint32)
    rows = MetricRows(
        GPU_TIME_NS, nodes, np.full(len(nodes), 10, np.uint64), np.array(list(times_ns.values()))
    )
    table = MetricTable({**profile.stored_metrics(), GPU_TIME_NS.name: rows})
    section = json.dumps({"devices": [{"name": "NVIDIA H100 80GB HBM3"}]}).encode()
    return dataclasses.replace(profile, metrics=table).with_section("gpu_nvidia", section)


# 316 GFLOP: 0.32 ms at the peak.
VOCABULARY = "aten::mm(bf16[4096, 768], bf16[768, {}])"


def test_a_size_that_tensor_cores_do_not_like(make_profile: MakeProfile) -> None:
    for size, is_found in ((50257, True), (50304, False)):
        profile = profile_of(make_profile, {VOCABULARY.format(size): [1 * MS] * 10})
        found = found_in(on_gpu(profile, {2: 10 * MS}))
        assert bool(found) is is_found
        if found:
            assert "pad 50257 to 50264, a multiple of 8" in found[0].advice
            assert found[0].gain is not None
            assert found[0].gain.metric == GPU_TIME_NS.name
    fast = profile_of(make_profile, {VOCABULARY.format(50257): [1 * MS] * 10})
    assert found_in(on_gpu(fast, {2: 5 * MS})) == []
