"""The roofline as the page reads it: the figures and sentences of the report, and what to run for more."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.peaks import SECTION, encode_section
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.cli.app import main
from deepcontext.ui.report.machine import report_to_dict
from deepcontext.ui.web.about import about
from deepcontext.ui.web.app import ViewSettings, create_app
from deepcontext.ui.web.findings import findings
from deepcontext.ui.web.one_file import make_page
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from deepcontext.ui.web.roofline import MOST_POINTS, roofline, roofline_answer
from deepcontext.ui.web.static_files import STATIC
from tests.profiler.summaries.test_roofline import CALLS, FRAMES, PARENTS, PEAKS, RUN, compiled
from tests.ui.test_web_one_file import header

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

STEPS = dataclasses.replace(RUN, steps=2)


def shaped(make_profile: MakeProfile) -> Profile:
    made = make_profile(
        PARENTS, FRAMES, call_samples_ns=CALLS, step_samples_ns=[200_000_000] * 2, run=STEPS
    )
    return made.with_section(SECTION, encode_section([PEAKS], 2))


def opened(profile: Profile, peaks: str | None = None) -> OpenProfiles:
    return OpenProfiles([OpenProfile.of_memory(profile, "one")], peaks=peaks)


def test_figures_are_those_of_the_report(make_profile: MakeProfile) -> None:
    profile = shaped(make_profile)
    report: dict[str, Any] = report_to_dict(profile, limit=0)
    (chart,) = roofline_answer(profile).charts
    efficiency, arithmetic = report["efficiency"], report["arithmetic"]
    groups = {group.by: group for group in chart.groups}
    for by, rows in (("line", efficiency["lines"]), ("operator", efficiency["shapes"])):
        group = groups[by]
        assert group.count == rows["row_count"] == len(group.points) > 1
        for point, row in zip(group.points, rows["rows"], strict=True):
            for key in ("time_ns", "calls", "flops", "bytes"):
                assert getattr(point, key) == row[key]
            if by == "operator":
                assert point.name == row["name"]
            else:
                assert (point.place.file, point.place.line) == (row["file"], row["line"])
            is_launch = point.limit == "launch"
            assert point.of_peak == (None if is_launch else row["of_peak"])
    assert chart.time_ns == efficiency["time_ns"]
    assert chart.mfu == arithmetic["mfu"]
    assert chart.step_flops_per_second == pytest.approx(arithmetic["flops"] / 2 / 200_000_000 * 1e9)
    assert chart.bytes_per_second == efficiency["roof"]["bytes_per_second"]
    assert [(each.type, each.flops_per_second) for each in chart.ceilings] == [("f32", 1e9)]


def of_steps(make_profile: MakeProfile, run: RunInfo) -> Profile:
    made = make_profile(
        PARENTS[:5],
        FRAMES[:5],
        call_samples_ns={4: CALLS[4]},
        step_samples_ns=[96_000_000] * 2,
        run=run,
    )
    return made.with_section(SECTION, encode_section([PEAKS], 2))


def test_the_share_of_the_peak_over_a_step_is_told(make_profile: MakeProfile) -> None:
    (chart,) = roofline_answer(of_steps(make_profile, STEPS)).charts
    # 48 Mflop a step in 96 ms, of 1 Gflop/s.
    assert chart.step_flops_per_second == pytest.approx(5e8)
    assert chart.mfu == pytest.approx(0.5)
    assert "50.0 % of the peak over a step (MFU)" in chart.notes[0]


def test_steps_that_were_timed_and_not_counted_have_no_rate(make_profile: MakeProfile) -> None:
    (chart,) = roofline_answer(of_steps(make_profile, RUN)).charts
    assert (chart.step_flops_per_second, chart.mfu) == (0.0, None)


def test_a_launch_has_no_share_of_the_peak(make_profile: MakeProfile) -> None:
    (chart,) = roofline_answer(shaped(make_profile)).charts
    limits = {point.name: point for point in chart.groups[0].points}
    assert limits["loop"].limit == "launch"
    assert limits["loop"].of_peak is None
    assert limits["loop"].limit_share == pytest.approx(3_000_000 / 4_009_000)
    assert limits["forward"].of_peak is not None


def test_many_operators_are_the_costliest_and_their_number(make_profile: MakeProfile) -> None:
    count = MOST_POINTS + 5
    frames = FRAMES[:2] + [
        Frame(FrameKind.OPERATOR, f"aten::neg(f32[{100 + size}])") for size in range(count)
    ]
    calls: dict[int, Sequence[int]] = {2 + at: [10**6 + at] for at in range(count)}
    made = make_profile([0, 0, *[1] * count], frames, call_samples_ns=calls, run=RUN)
    (chart,) = roofline_answer(made).charts
    group = chart.groups[-1]
    assert (group.by, group.count, len(group.points)) == ("operator", count, MOST_POINTS)
    assert (
        group.points[0].time_ns == max(point.time_ns for point in group.points) == 10**6 + count - 1
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("aten::mm", "have no shapes"),
        ("aten::mm([2, 3], [3, 4])", "no element types"),
    ],
)
def test_what_is_missing_is_told_with_the_command(
    make_profile: MakeProfile, name: str, told: str
) -> None:
    made = make_profile(
        [0, 0], [FRAMES[0], Frame(FrameKind.OPERATOR, name)], call_samples_ns={1: [10**6]}, run=RUN
    )
    answer = roofline_answer(made)
    assert answer.charts == []
    assert told in answer.missing
    assert "deepcontext profile --shapes" in answer.missing
    assert about(opened(made)).profiles[0].roofline


def test_without_peaks_the_page_says_how_to_get_them(
    make_profile: MakeProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = make_profile(PARENTS, FRAMES, call_samples_ns=CALLS, run=RUN)
    (chart,) = roofline(opened(made), 0).charts
    assert any("'deepcontext doctor --measure'" in note for note in chart.notes)
    assert (chart.ceilings, chart.bytes_per_second) == ([], 0.0)


def test_peaks_of_a_file_and_of_this_machine_are_used(
    make_profile: MakeProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = make_profile(PARENTS, FRAMES, call_samples_ns=CALLS, run=RUN)
    made = made.with_section(SECTION, encode_section([], 2))
    row = {
        "device": RUN.cpu_model,
        "cores": RUN.cpu_count,
        "threads": 2,
        "flops_per_second": {"f32": 3e9},
        "bytes_per_second": 2e9,
        "spread": {"f32": 0.1},
    }
    content = {"format": "deepcontext peaks", "version": 1, "devices": [row]}
    given = tmp_path / "given.json"
    given.write_text(json.dumps(content, indent=2), "utf-8")
    (chart,) = roofline(opened(made, str(given)), 0).charts
    assert [each.flops_per_second for each in chart.ceilings] == [3e9]
    (chart,) = roofline(opened(made), 0).charts
    assert chart.ceilings == []
    (tmp_path / "deepcontext").mkdir()
    given.rename(tmp_path / "deepcontext" / "peaks.json")
    # Measured while the server runs: a reload shows them.
    (chart,) = roofline(opened(made), 0).charts
    assert [each.flops_per_second for each in chart.ceilings] == [3e9]


def test_findings_of_the_page_are_judged_by_the_same_peaks(
    make_profile: MakeProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    product = Frame(FrameKind.OPERATOR, "aten::mm(i64[300, 300], i64[300, 300])")
    made = make_profile(
        [0, 0, 1],
        [*FRAMES[:2], product],
        host_time_ns={2: 3 * 10**7},
        call_samples_ns={2: [10**7] * 3},
        run=RUN,
    )
    made = made.with_section(SECTION, encode_section([], 2))
    given = tmp_path / "given.json"
    rates = {"i64": 1e10, "f64": 1e12}
    row = {"device": RUN.cpu_model, "cores": 4, "threads": 2, "flops_per_second": rates}
    content = {"format": "deepcontext peaks", "version": 1, "devices": [row]}
    given.write_text(json.dumps(content, indent=2), "utf-8")
    found = [
        {row.id for row in findings(opened(made, peaks), 0).findings}
        for peaks in (None, str(given))
    ]
    assert found[1] - found[0] == {"far_from_peak"}


def test_jax_names_the_measure_by_which_its_nodes_have_boxes(make_profile: MakeProfile) -> None:
    (chart,) = roofline_answer(compiled(make_profile)).charts
    assert (chart.title, chart.metric) == ("JAX", "device_time_ns")
    assert [group.by for group in chart.groups] == ["line", "operation", "program"]
    assert chart.notes[0].startswith("96.0 MFLOP in 122 ms of operations")


def test_jax_without_timed_operations_says_so(make_profile: MakeProfile) -> None:
    made = make_profile([0], FRAMES[:1], run=RunInfo())
    content = {"version": 1, "programs": [], "times": []}
    answer = roofline_answer(made.with_section("jax", json.dumps(content).encode()))
    assert answer.charts == []
    assert "too short" in answer.missing


def test_server_and_file_have_the_same_answer(make_profile: MakeProfile) -> None:
    profiles = opened(shaped(make_profile))
    client = create_app(profiles, ViewSettings("t")).test_client()
    answer = client.get("/t/api/roofline").get_json()
    assert answer["charts"]
    assert header(make_page(profiles))["roofline"] == answer
    assert client.get("/t/static/roofline.js").status_code == 200


def test_only_a_page_with_operators_has_the_view_and_its_script(
    make_profile: MakeProfile, training_folder: Path
) -> None:
    script = (STATIC / "roofline.js").read_text("utf-8")
    plain = OpenProfiles.open([training_folder / "plain.dcprof"])
    assert not about(plain).profiles[0].roofline
    assert script not in make_page(plain).text
    profiles = opened(shaped(make_profile))
    assert about(profiles).profiles[0].roofline
    assert script in make_page(profiles).text


def test_peaks_that_cannot_be_read_are_refused_at_once(
    training_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.json"
    page = tmp_path / "page.html"
    words = ["view", str(training_folder / "plain.dcprof"), "--peaks", str(missing)]
    assert main([*words, "--html", str(page)]) == 2
    assert "missing.json" in capsys.readouterr().err
    assert not page.exists()
