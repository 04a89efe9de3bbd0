"""A merged profile has the steady states of its ranks, aligned by the numbers of steps."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.node_sections import WINDOWS
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries import ranks
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.ui.account_texts import steady_text
from deepcontext.ui.cli import app
from tests.windows import rows, with_windows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.conftest import MakeProfile

MS = 1_000_000
FRAMES = (
    Frame(FrameKind.ROOT, "root"),
    Frame(FrameKind.PYTHON, "main", "train.py", 3),
    Frame(FrameKind.OPERATOR, "aten::mm"),
)


def window(first: int, end: int, step_ns: int) -> dict[str, Any]:
    steps = end - first
    return {
        "first_step": first,
        "end_step": end,
        "begin_ns": first * 100 * MS,
        "end_ns": end * 100 * MS,
        "timed_steps": steps if first else 0,
        "step_total_ns": steps * 100 * MS if first else 0,
        "step_minimum_ns": 100 * MS,
        "step_maximum_ns": 100 * MS,
        "metrics": [{"name": "host_time_ns", **rows([2], [steps], [steps * step_ns])}],
    }


def rank(make_profile: MakeProfile, number: int, ends: Sequence[int], step_ns: int) -> Profile:
    """Return a rank of 20 steps, cut after the steps `ends`, whose first step takes 900 ms."""
    made = make_profile(
        [0, 0, 1],
        FRAMES,
        host_time_ns={2: 900 * MS + 19 * step_ns},
        step_samples_ns=[100 * MS] * 19,
        run=RunInfo(wall_ns=2000 * MS, script="train.py", rank=number, ranks=2),
    )
    begins = [0, *ends[:-1]]
    windows = [
        window(first, end, step_ns if first else 900 * MS)
        for first, end in zip(begins, ends, strict=True)
    ]
    return with_windows(made, windows)


def test_ranks_that_were_cut_at_other_steps_have_the_steps_of_both(
    make_profile: MakeProfile,
) -> None:
    parts = {
        "a": rank(make_profile, 0, [1, 2, 4, 10, 16], 2 * MS),
        "b": rank(make_profile, 1, [1, 4, 16], 3 * MS),
    }
    merged = Profile.from_bytes(merge(parts).to_bytes())
    basis = basis_of(merged)
    assert basis.part is Part.STEADY
    # Both ranks have a steady step 2 and 16, in windows of their own.
    assert (basis.first_step, basis.steps) == (2, 15)
    host = basis.profile.exclusive("host_time_ns")
    assert host[host > 0].tolist() == [15 * 2 * MS + 15 * 3 * MS]
    assert [(row.steps, row.operator_ns) for row in ranks.by_rank(basis.profile)] == [
        (15, 15 * 2 * MS),
        (15, 15 * 3 * MS),
    ]
    assert [row.operator_ns for row in ranks.by_rank(basis.whole)] == [938 * MS, 957 * MS]
    values = ranks.own_values(basis.profile, "host_time_ns").sum(axis=0)
    np.testing.assert_allclose(values, [15 * 2 * MS, 15 * 3 * MS], rtol=1e-3)
    assert steady_text(basis) == "15 steps of 100 ms from step 2 on, means of 2 ranks"
    assert basis.rest is not None
    whole = basis.whole.exclusive("host_time_ns")
    assert (host + basis.rest.exclusive("host_time_ns") == whole).all()


def test_a_rank_without_a_steady_state_leaves_the_job_whole(make_profile: MakeProfile) -> None:
    parts = {
        "a": rank(make_profile, 0, [1, 2, 4, 10, 16], 2 * MS),
        "b": dataclasses.replace(rank(make_profile, 1, [1, 4, 16], 3 * MS), sections={}),
    }
    merged = merge(parts)
    assert basis_of(merged).part is Part.RUN
    assert any("windows of the run" in note for note in merged.trust.notes)


@pytest.mark.parametrize("ends", [[1], [1, 20]])
def test_ranks_without_a_common_steady_window_have_none(
    make_profile: MakeProfile, ends: list[int]
) -> None:
    parts = {
        "a": rank(make_profile, 0, [1, 2, 4, 10, 16], 2 * MS),
        "b": rank(make_profile, 1, ends, 3 * MS),
    }
    assert basis_of(merge(parts)).part is Part.RUN


def test_what_was_joined_before_is_joined_again_with_its_steady_state(
    make_profile: MakeProfile, tmp_path: Path
) -> None:
    files = []
    for number in range(4):
        ends = [1, 2, 4, 10, 16] if number % 2 else [1, 4, 16]
        made = rank(make_profile, number, ends, (2 + number) * MS)
        run = dataclasses.replace(made.run, ranks=4)
        files.append(tmp_path / f"{number}.dcprof")
        dataclasses.replace(made, run=run).save(files[-1])
    whole = merge({file.name: Profile.load(file) for file in files})
    parts = {}
    for start in (0, 2):
        part = merge({file.name: Profile.load(file) for file in files[start : start + 2]})
        parts[str(start)] = Profile.from_bytes(part.to_bytes())
    again = merge(parts)
    assert again.sections[WINDOWS] == whole.sections[WINDOWS]
    assert again.sections[sections.COLUMNS] == whole.sections[sections.COLUMNS]
    assert basis_of(again).part is Part.STEADY
    shorter = rank(make_profile, 4, [1, 2, 4, 10], 2 * MS)
    shorter = dataclasses.replace(shorter, run=dataclasses.replace(shorter.run, ranks=4))
    assert basis_of(merge({**parts, "4": shorter})).part is Part.RUN
    words = ["merge", "-o", str(tmp_path / "job.dcprof"), *map(str, files)]
    assert app.main(words) == 0
    assert Profile.load(tmp_path / "job.dcprof").sections[WINDOWS] == whole.sections[WINDOWS]
