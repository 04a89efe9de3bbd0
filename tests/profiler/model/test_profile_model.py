"""Values of metrics over the tree."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import Aggregation, MetricDescriptor
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo

if TYPE_CHECKING:
    from tests.conftest import MakeProfile

ROOT = Frame(FrameKind.ROOT, "")
STEP = Frame(FrameKind.PYTHON, "step", "/home/me/train.py", 12)
LINEAR = Frame(FrameKind.OPERATOR, "aten::linear")
ADDMM = Frame(FrameKind.OPERATOR, "aten::addmm")
PEAK = MetricDescriptor("peak_bytes", "bytes", Aggregation.MAX, "largest live size")


@pytest.fixture
def profile(make_profile: MakeProfile) -> Profile:
    """root > step > linear > addmm, and step > addmm."""
    return make_profile(
        [0, 0, 1, 2, 1],
        [ROOT, STEP, LINEAR, ADDMM, ADDMM],
        host_time_ns={2: 5, 3: 20, 4: 100},
        call_samples_ns={2: [10, 30], 3: [20], 4: [40, 60]},
    )


def test_a_sum_is_exclusive_where_stored_and_inclusive_over_the_subtree(profile: Profile) -> None:
    assert profile.exclusive("host_time_ns").tolist() == [0, 0, 5, 20, 100]
    assert profile.inclusive("host_time_ns").tolist() == [125, 125, 25, 20, 100]
    assert profile.counts("host_time_ns").tolist() == [0, 0, 2, 1, 2]


def test_a_property_is_not_summed_over_the_subtree(profile: Profile) -> None:
    assert profile.inclusive("call_duration_ns").tolist() == [0, 0, 40, 20, 100]


def test_a_maximum_is_the_largest_over_the_subtree(profile: Profile) -> None:
    rows = MetricRows(
        PEAK,
        node=np.array([2, 3], np.uint32),
        count=np.array([1, 4], np.uint64),
        total=np.array([7, 30], np.int64),
        maximum=np.array([7, 9], np.int64),
    )
    peaks = Profile(
        profile.frames, profile.tree, MetricTable({"peak_bytes": rows}), profile.run, profile.trust
    )
    assert peaks.exclusive("peak_bytes").tolist() == [0, 0, 7, 9, 0]
    assert peaks.inclusive("peak_bytes").tolist() == [9, 9, 9, 9, 0]
    assert peaks.query().kind("operator").total("peak_bytes") == 9


def test_dense_values_are_computed_once_and_cannot_be_changed(profile: Profile) -> None:
    for values in (profile.exclusive, profile.inclusive, profile.counts):
        assert values("host_time_ns") is values("host_time_ns")
        with pytest.raises(ValueError, match="read-only"):
            values("host_time_ns")[0] = 1


def test_an_unknown_metric_is_refused_with_the_known_ones(profile: Profile) -> None:
    with pytest.raises(
        QueryError, match=r"no metric 'gpu_time_ns'.*call_duration_ns, host_time_ns"
    ):
        profile.exclusive("gpu_time_ns")
    assert "gpu_time_ns" not in profile.metrics
    assert profile.metrics.get("gpu_time_ns") is None


def test_frames_and_paths_of_nodes(profile: Profile) -> None:
    assert profile.frame(3) == ADDMM
    assert profile.path(3) == (ROOT, STEP, LINEAR, ADDMM)
    assert str(profile.frame(1)) == "step /home/me/train.py:12"


@given(data=st.data())
def test_inclusive_is_at_least_exclusive_and_the_sum_is_preserved(
    data: st.DataObject, profiles: st.SearchStrategy[Profile]
) -> None:
    made = data.draw(profiles)
    exclusive, inclusive = made.exclusive("host_time_ns"), made.inclusive("host_time_ns")
    assert (inclusive >= exclusive).all()
    assert inclusive[0] == exclusive.sum() == made.metrics["host_time_ns"].total.sum()


def test_what_follows_from_a_profile_is_computed_once_for_each_profile_and_key(
    profile: Profile,
) -> None:
    calls: list[str] = []

    def ask(of: Profile, key: str) -> str:
        def compute() -> str:
            calls.append(key)
            return f"{key} {len(calls)}"

        return of.once(key, compute)

    assert [ask(profile, "a"), ask(profile, "a"), ask(profile, "b")] == ["a 1", "a 1", "b 2"]
    other = dataclasses.replace(profile, source="another")
    assert ask(other, "a") == "a 3"


@pytest.mark.parametrize(
    ("code", "is_user"),
    [("import train", True), ("from multiprocessing.spawn import spawn_main; spawn_main()", False)],
)
def test_the_code_of_a_command_is_of_the_user_but_not_that_of_multiprocessing(
    make_profile: MakeProfile, *, code: str, is_user: bool
) -> None:
    run = RunInfo(command=("python", "-c", code))
    profile = make_profile([0, 0], [ROOT, _body("<string>")], run=run)
    assert profile.is_user_code().tolist() == [False, is_user]


def _body(file: str) -> Frame:
    return Frame(FrameKind.PYTHON, "<module>", file, 1)


@pytest.mark.parametrize("name", ["<string>", "<cell 3>"])
def test_code_from_a_string_is_of_the_user_where_the_users_code_runs_it(
    make_profile: MakeProfile, name: str
) -> None:
    root, main = Frame(FrameKind.ROOT, ""), Frame(FrameKind.THREAD, "MainThread")
    runner = Frame(FrameKind.PYTHON, "run", "/home/me/cells.py", 5)
    library = Frame(FrameKind.PYTHON, "_create_fn", "/usr/lib/python3.11/dataclasses.py", 433)
    train, generated = (Frame(FrameKind.PYTHON, "f", file, 2) for file in (name, "<generated>"))
    frames = [root, main, runner, _body(name), train, library, _body("<generated>"), generated]
    found = make_profile([0, 0, 1, 2, 3, 4, 5, 4], frames)
    is_user = found.is_user_code()[found.tree.frame]
    assert is_user.tolist() == [False, False, True, True, True, False, False, False]
