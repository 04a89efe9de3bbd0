"""Saving, loading and showing profiles."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepcontext.errors import ProfileDataError, QueryError, UserError
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import MakeProfile

    SameProfile = Callable[[Profile, Profile], None]

TEXTS = ["", "<string>", "<unknown>", "/no/such/файл.py", "a\nb\x00c", "Linear '0'", "x" * 10_000]


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_profile_is_the_same_after_a_round_trip(
    data: st.DataObject,
    profiles: st.SearchStrategy[Profile],
    assert_same_profile: SameProfile,
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.dcprof"
    made = data.draw(profiles).with_section("notes", data.draw(st.binary()))
    made.save(path)
    loaded = Profile.load(path)
    assert_same_profile(loaded, made)
    assert loaded.to_bytes() == path.read_bytes()
    assert loaded.to_dict() == made.to_dict()


def test_any_text_survives_the_round_trip(
    make_profile: MakeProfile, assert_same_profile: SameProfile
) -> None:
    frames = [Frame(FrameKind.ROOT, "")]
    frames += [Frame(FrameKind.PYTHON, name, file, 1) for name in TEXTS for file in TEXTS]
    run = RunInfo(command=tuple(TEXTS), options={text: text for text in sorted(TEXTS)})
    made = make_profile([0] * len(frames), frames, run=run)
    assert_same_profile(Profile.from_bytes(made.to_bytes()), made)


def test_a_file_name_that_is_not_unicode_does_not_break_the_file(
    make_profile: MakeProfile,
) -> None:
    frame = Frame(FrameKind.PYTHON, "f", os.fsdecode(b"/tmp/\xff.py"), 1)
    made = make_profile([0, 0], [Frame(FrameKind.ROOT, ""), frame])
    loaded = Profile.from_bytes(made.to_bytes())
    assert loaded.frame(1).file == "/tmp/?.py"


# -- files


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "no folder", "null"])
def test_a_path_that_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.dcprof"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "no folder":
            path = path / "run.dcprof"
        case "null":
            path = tmp_path / "run\x00.dcprof"
    with pytest.raises(UserError, match=r"^cannot read '.*dcprof': ") as caught:
        Profile.load(path)
    assert str(path) in str(caught.value)


def test_a_foreign_file_is_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": []}', encoding="utf-8")
    with pytest.raises(ProfileDataError, match=r"trace\.json': not a profile; name a file"):
        Profile.load(str(path))


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.dcprof"
    random_profile(20, seed=1).save(path)
    with path.open("rb") as held:
        random_profile(5_000, seed=2).save(path)
        assert Profile.from_bytes(held.read()).to_dict() == random_profile(20, seed=1).to_dict()


def test_saving_over_a_file_that_is_no_profile_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "hello.py"
    path.write_text("print('hello')\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"hello\.py': the file exists and is not a profile"):
        random_profile(3).save(path)
    assert path.read_text(encoding="utf-8") == "print('hello')\n"
    random_profile(3).save(path, force=True)
    assert len(Profile.load(path).tree) == 3


# -- contents


def test_a_profile_shows_itself_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.dcprof"
    made = random_profile(5_000)
    made.save(path)
    run = dataclasses.replace(made.run, script="train.py" * 1000, wall_ns=12_345_000_000)
    assert len(repr(dataclasses.replace(made, run=run))) < 100
    run = dataclasses.replace(run, script="train.py")
    short = dataclasses.replace(made, run=run)
    assert repr(short) == f"<Profile of 'train.py': 12.3 s, {len(made.tree):,} nodes>"
    assert repr(Profile.load(path)).endswith(f"nodes, file {str(path)!r}>")


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    return make_profile(
        [0, 0, 1, 2, 1],
        [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.PYTHON, "step", "/home/me/train.py", 12),
            Frame(FrameKind.OPERATOR, "aten::linear"),
            Frame(FrameKind.OPERATOR, "aten::addmm"),
            Frame(FrameKind.OPERATOR, "aten::relu"),
        ],
        phases=[Phase.NONE, Phase.NONE, Phase.FORWARD, Phase.FORWARD, Phase.FORWARD],
        host_time_ns={2: 5, 3: 70, 4: 25},
        call_samples_ns={3: [30, 40]},
    )


def test_hot_paths_are_ranked_by_exclusive_or_inclusive_value(profile: Profile) -> None:
    first, second, third = profile.hot_paths()
    assert [frame.name for frame in first.frames] == ["step", "aten::linear", "aten::addmm"]
    assert (first.node, first.exclusive, first.inclusive, first.count) == (3, 70, 70, 2)
    assert (first.share, second.share, third.share) == (0.7, 0.25, 0.05)
    assert [path.node for path in profile.hot_paths(inclusive=True, limit=2)] == [1, 2]
    assert profile.hot_paths("call_duration_ns")[0].node == 3
    with pytest.raises(QueryError, match="no metric 'flops'"):
        profile.hot_paths("flops")


def test_to_dict_is_nested_and_can_be_written_as_json(profile: Profile) -> None:
    plain = json.loads(json.dumps(profile.with_section("x", b"\xff").to_dict(), allow_nan=False))
    assert base64.b64decode(plain["sections"]["x"]) == b"\xff"
    step = plain["tree"]["children"][0]
    assert (step["kind"], step["name"], step["file"], step["line"]) == (
        "python",
        "step",
        "/home/me/train.py",
        12,
    )
    linear, relu = step["children"]
    addmm = linear["children"][0]
    assert addmm["metrics"]["host_time_ns"] == {"count": 2, "total": 70}
    assert addmm["metrics"]["call_duration_ns"] == {
        "count": 2,
        "total": 70,
        "minimum": 30,
        "maximum": 40,
        "m2": 50.0,
    }
    assert (relu["id"], relu["phase"], relu["children"]) == (4, "forward", [])
    assert [metric["aggregation"] for metric in plain["metrics"]] == ["sum", "property"]


def test_to_dict_of_a_very_deep_tree_does_not_recurse(make_profile: MakeProfile) -> None:
    frame = Frame(FrameKind.PYTHON, "f", "/home/me/train.py", 1)
    node: dict[str, Any] = make_profile([0, *range(4_999)], [frame] * 5_000).to_dict()["tree"]
    depth = 0
    while node["children"]:
        node, depth = node["children"][0], depth + 1
    assert depth == 4_999


def test_a_section_is_added_without_changing_the_profile(profile: Profile) -> None:
    more = profile.with_section("findings", b"[]").with_section("findings", b"[1]")
    assert more.sections == {"findings": b"[1]"}
    assert profile.sections == {}
    assert Profile.from_bytes(more.to_bytes()).sections == more.sections
