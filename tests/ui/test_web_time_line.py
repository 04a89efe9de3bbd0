"""The time line as the page reads it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import QueryError
from deepcontext.profiler.format import step_source
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.ui.web import time_line as page_line
from deepcontext.ui.web.about import about
from deepcontext.ui.web.app import ViewSettings, create_app
from deepcontext.ui.web.one_file import make_page
from deepcontext.ui.web.open_profiles import ChangedFileError, OpenProfile, OpenProfiles
from deepcontext.ui.web.static_files import STATIC
from tests.kept_steps import lane, step, with_steps
from tests.ui.engine import answers
from tests.ui.test_cli_windows import MS, window
from tests.ui.test_web_one_file import header
from tests.windows import with_windows

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

# Of a step of the run in windows, ns.
WALL = 100 * MS
FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.PYTHON, "main", "/p/train.py", 7),
    Frame(FrameKind.MODULE, "model"),
    Frame(FrameKind.OPERATOR, "aten::linear"),
    Frame(FrameKind.KERNEL, "gemm"),
    Frame(FrameKind.OPERATOR, "aten::detach"),
)


@pytest.fixture
def plain(make_profile: MakeProfile) -> Profile:
    phases = [Phase.NONE] * 3 + [Phase.FORWARD] * 2 + [Phase.NONE]
    run = RunInfo(script="/p/train.py", cwd="/p", wall_ns=5000)
    return make_profile([0, 0, 1, 2, 3, 0], FRAMES, phases=phases, run=run)


@pytest.fixture
def profile(plain: Profile) -> Profile:
    kernels = lane([(4, 200, 300)], "gpu cuda", device=1, stream=3)
    slow = step(7, 1000, 3000, [lane([(3, 100, 1700), (5, 1900, 20)]), kernels])
    usual = step(8, 3000, 3600, [lane([(3, 150, 300)], known_from_ns=50)], reasons=2)
    history = {
        "bins": [[600, 1], [2000, 1]],
        "parts": [[2, 2600, 600, 2000]],
        "source": "optimizer",
        "what": "Optimizer.step#SGD.step",
        "count": 3,
        "file": "",
        "line": 0,
    }
    section = json.dumps(history).encode()
    return with_steps(plain, slow, usual).with_section(step_source.SECTION, section)


def in_windows(make_profile: MakeProfile) -> Profile:
    """Return a run of set-up, warm-up and two windows of eight steady steps each."""
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.PYTHON, "main", "train.py", 3),
        Frame(FrameKind.OPERATOR, "aten::mm"),
        Frame(FrameKind.OPERATOR, "aten::add"),
    ]
    made = make_profile(
        [0, 0, 1, 1],
        frames,
        host_time_ns={2: 106 * MS, 3: 13 * MS},
        call_samples_ns={2: [90 * MS, *[2 * MS] * 8], 3: [5 * MS, *[MS] * 8]},
        step_samples_ns=[5 * MS, *[MS] * 8, *[2 * MS] * 8],
        run=RunInfo(wall_ns=1800 * MS, script="train.py"),
    )
    history = {
        "bins": [[MS, 8], [2 * MS, 8], [5 * MS, 1]],
        "parts": [[1, 5 * MS, 5 * MS, 5 * MS], [8, 8 * MS, MS, MS], [8, 16 * MS, 2 * MS, 2 * MS]],
        "source": "optimizer",
        "what": "Optimizer.step#SGD.step",
        "count": 18,
        "file": "",
        "line": 0,
    }
    windows = [
        {**window(first, end, step_ns, node), "begin_ns": first * WALL, "end_ns": end * WALL}
        for first, end, step_ns, node in (
            (0, 1, 90 * MS, 2),
            (1, 2, 5 * MS, 3),
            (2, 10, MS, 3),
            (10, 18, 2 * MS, 2),
        )
    ]
    kept = step(5, 4 * WALL, 5 * WALL, [lane([(3, 0, MS)])])
    profile = with_steps(with_windows(made, windows), kept)
    return profile.with_section(step_source.SECTION, json.dumps(history).encode())


def opened(profile: Profile) -> OpenProfiles:
    return OpenProfiles([OpenProfile.of_memory(profile, "one")])


def test_all_steps_have_times_and_kept_ones_a_reason(profile: Profile) -> None:
    answer = page_line.time_line(profile)
    assert answer.rule == "a step is what ends with Optimizer.step#SGD.step"
    assert [(part.count, part.maximum_ns) for part in answer.parts] == [(2, 2000)]
    slow, usual = answer.steps
    assert (slow.number, slow.duration_ns, slow.why) == (7, 2000, "among the slowest")
    assert slow.cause == "1.40 us more than usual: train.py:7"
    assert slow.paths[0] == "1.40 us: train.py:7 > model > aten::linear"
    assert usual.why == "chosen at random"


def test_a_step_has_lanes_and_what_its_nodes_are(profile: Profile) -> None:
    answer = page_line.step(profile, "7")
    linear, kernel, detach = answer.nodes
    assert (linear.name, linear.layer, linear.phase) == ("aten::linear", "operator", "forward")
    assert (linear.place.shown, linear.place.line, linear.modules) == ("train.py", 7, "model")
    assert (kernel.node, kernel.layer) == (4, "gpu")
    assert detach.place.file == ""
    thread, stream = answer.lanes
    assert (thread.name, thread.is_device) == ("MainThread", False)
    assert (thread.node, thread.begin_step) == ([0, 2], [100, 1800])
    assert thread.duration_ns == [1700, 20]
    assert (stream.name, stream.is_device, stream.node) == ("GPU 1, stream 3", True, [1])
    assert page_line.step(profile, "8").lanes[0].known_from_ns == 50
    with pytest.raises(QueryError, match="step '9' was not kept"):
        page_line.step(profile, "9")


def test_server_and_file_have_the_same(profile: Profile) -> None:
    profiles = opened(profile)
    client = create_app(profiles, ViewSettings("t")).test_client()
    found = header(make_page(profiles))
    assert client.get("/t/api/timeline").get_json() == found["timeline"]
    for number in ("7", "8"):
        assert client.get(f"/t/api/step?name={number}").get_json() == found["step"][number]
    assert client.get("/t/api/step?name=x").status_code == 400
    assert client.get("/t/static/timeline.js").status_code == 200


def test_a_file_has_the_slowest_steps(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_line, "MOST_SPANS", 3)
    answers: dict[str, Any] = page_line.steps_of_page(profile)
    assert list(answers) == ["7", ""]
    assert "has room for the slowest ones" in answers[""].error


def test_only_a_page_with_kept_steps_has_the_script(profile: Profile, plain: Profile) -> None:
    script = (STATIC / "timeline.js").read_text("utf-8")
    assert about(opened(profile)).profiles[0].kept_steps == 2
    assert about(opened(plain)).profiles[0].kept_steps == 0
    page = make_page(opened(profile)).text
    assert script in page
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"sha256-{digest}" in html.unescape(page)
    assert script not in make_page(opened(plain)).text


def test_windows_of_steps_are_opened_beside_the_run(make_profile: MakeProfile) -> None:
    profiles = opened(in_windows(make_profile))
    client = create_app(profiles, ViewSettings("t")).test_client()

    def opens(question: str, status: int = 200) -> Any:
        answer = client.post(f"/t/api/steps?{question}")
        assert answer.status_code == status
        return answer.get_json()

    assert opens("file=0&first=12&last=13") == {"file": 1}
    assert opens("file=0&first=11&last=18") == {"file": 1}  # the same window
    assert opens("file=1&first=3&last=3") == {"file": 2}  # of the run, not of the part
    answer = client.get("/t/api/about").get_json()
    whole, second, first = answer["profiles"]
    assert [each["name"] for each in (whole, second, first)] == [
        "one",
        "one, steps 11 to 18",
        "one, steps 3 to 10",
    ]
    assert len({each["version"] for each in answer["profiles"]}) == 3
    assert answer["compared"] == 3
    totals = [
        sum(row["inclusive"] for row in each["rows"])
        for each in answers(
            profiles, [("table", {"file": str(file), "by": "line"}) for file in (1, 2)]
        )
    ]
    assert totals == [2 * MS, MS]
    line = client.get("/t/api/timeline?file=2").get_json()
    assert [each["shown"] for each in line["windows"]] == [False, False, True, False]
    assert [each["kind"] for each in line["windows"]] == ["setup", "warmup", "steady", "steady"]
    assert sum(each["count"] for each in line["parts"]) == 17
    assert "no window of steps 90 to 99" in opens("file=0&first=90&last=99", 400)["error"]
    assert "'first' must be a whole number" in opens("file=0&first=x&last=9", 400)["error"]
    opens("file=9&first=1&last=2", 400)


def test_a_part_that_is_shown_as_sums_is_not_compared(make_profile: MakeProfile) -> None:
    profiles = opened(in_windows(make_profile))
    assert profiles.add_steps(0, 1, 2) == 1
    assert profiles.compared == 1
    assert profiles.add_steps(0, 2, 9) == 2


def test_steps_of_a_file_that_was_written_again_are_those_of_the_newer_run(
    make_profile: MakeProfile, plain: Profile, tmp_path: Path
) -> None:
    path = tmp_path / "train.dcprof"
    in_windows(make_profile).save(path)
    profiles = OpenProfiles.open([path])
    profiles.add_steps(0, 3, 3)
    plain.save(path, force=True)
    with pytest.raises(ChangedFileError):
        profiles.get(1)
    names = [each.name for each in profiles.refresh()]
    assert names == ["train.dcprof", "train.dcprof"]  # it has no steps
    in_windows(make_profile).save(path, force=True)
    assert profiles.refresh()[1].name == "train.dcprof, steps 3 to 10"
