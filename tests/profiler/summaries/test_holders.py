"""The section about holders of tensors: read, missing, damaged, newer."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.analyzers.shared import held_tensors
from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.summaries.holders import holders

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

ROW = {
    "holder": "list Trainer.logged",
    "tensors": 40,
    "with_graph": 39,
    "size_bytes": 4096,
    "kept_share": 1.0,
    "first_tensors": 10,
    "looks": 2,
    "places": [[["/home/me/train.py", 3, "<module>"], ["/home/me/train.py", 12, "step"]]],
}


def with_section(make_profile: MakeProfile, content: Any) -> Profile:
    profile = make_profile([0], [Frame(FrameKind.ROOT, "")])
    sections = {"holders": json.dumps(content).encode()}
    return dataclasses.replace(profile, sections=sections)


def test_a_holder_knows_its_lines(make_profile: MakeProfile) -> None:
    (holder,) = holders(with_section(make_profile, {"version": 1, "holders": [ROW]}))
    assert (holder.name, holder.with_graph) == ("list Trainer.logged", 39)
    assert holder.made_at("/home/me/train.py", 12)
    assert holder.made_at("/home/me/train.py", 3)
    assert not holder.made_at("/home/me/train.py", 4)


def test_a_count_of_a_search_that_ended_early_is_a_lower_bound(make_profile: MakeProfile) -> None:
    rows = [ROW, {**ROW, "is_complete": True}, {**ROW, "is_complete": False}]
    profile = with_section(make_profile, {"version": 1, "holders": rows})
    assert [held_tensors.text(each) for each in holders(profile)] == [
        "list Trainer.logged holds 40 tensors, 39 with a graph",
        "list Trainer.logged holds 40 tensors, 39 with a graph",
        "list Trainer.logged holds at least 40 tensors, 39 with a graph",
    ]


def test_a_profile_without_the_section_has_none(make_profile: MakeProfile) -> None:
    assert holders(make_profile([0], [Frame(FrameKind.ROOT, "")])) == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"version": 1, "holders": [{"holder": "x"}]}, "damaged"),
        ({"holders": []}, "damaged"),
        ({"version": 2, "holders": []}, "upgrade"),
    ],
)
def test_a_section_that_cannot_be_read(
    make_profile: MakeProfile, content: Any, message: str
) -> None:
    with pytest.raises(ProfileDataError, match=message):
        holders(with_section(make_profile, content))
