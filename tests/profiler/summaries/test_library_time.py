"""If one user line has all of the time, the package lines below that line are listed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS, SAMPLED_WAIT_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.summaries.library_time import library_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

SITE = "/usr/lib/python3.12/site-packages"
STANDARD = "/usr/lib/python3.12"
ROOT, MAIN = Frame(FrameKind.ROOT, ""), Frame(FrameKind.THREAD, "MainThread")
OPERATOR = Frame(FrameKind.OPERATOR, "aten::mm")


def _line(file: str, line: int, name: str = "f") -> Frame:
    return Frame(FrameKind.PYTHON, name, file, line)


USER = _line("/home/me/train.py", 12, "<module>")
LOOP = _line(f"{SITE}/lightning/loop.py", 80)
MODEL = _line(f"{SITE}/transformers/model.py", 243)
OTHER = _line(f"{SITE}/transformers/model.py", 250)
LINEAR = _line(f"{SITE}/torch/nn/linear.py", 134)


def _sampled(
    profile: Profile, times: dict[int, int], metric: MetricDescriptor = SAMPLED_CPU_TIME_NS
) -> Profile:
    node = np.array(sorted(times), np.uint32)
    values = np.array([times[each] for each in node.tolist()], np.int64)
    rows = MetricRows(metric, node, np.ones(len(node), np.uint64), values)
    return dataclasses.replace(profile, metrics={**profile.stored_metrics(), metric.name: rows})


def _chain(make: MakeProfile, *branches: Sequence[Frame]) -> Profile:
    """Return a profile of paths from the main thread, 10 ns in the operator at the end of each."""
    frames, parents, costs = [ROOT, MAIN], [0, 0], {}
    for branch in branches:
        above = 1
        for frame in branch:
            frames.append(frame)
            parents.append(above)
            above = len(frames) - 1
        if branch[-1].kind is FrameKind.OPERATOR:
            costs[above] = 10
    return make(parents, frames, host_time_ns=costs)


def _lines(profile: Profile) -> list[tuple[str, int, int]]:
    found = library_time(profile)
    assert found is not None
    return [(row.path, row.frame.line, row.time_ns) for row in found.lines]


def test_the_time_of_operators_goes_to_the_innermost_line_of_a_package(
    make_profile: MakeProfile,
) -> None:
    profile = _chain(
        make_profile,
        (USER, LOOP, MODEL, LINEAR, OPERATOR),
        (USER, LOOP, MODEL, OPERATOR),
        (USER, LOOP, OTHER, LINEAR, OPERATOR),
        (USER, LOOP, OPERATOR),
    )
    found = library_time(profile)
    assert found is not None
    assert found.line == USER
    assert found.time_ns == 40
    assert found.packages == (("transformers", 30), ("lightning", 10))
    assert _lines(profile) == [
        ("transformers/model.py", 243, 20),
        ("lightning/loop.py", 80, 10),
        ("transformers/model.py", 250, 10),
    ]
    short = library_time(profile, 1)
    assert short is not None
    assert (len(short.lines), short.line_count) == (1, 3)


def test_python_between_operators_counts_and_imports_do_not(make_profile: MakeProfile) -> None:
    imported = _line(f"{SITE}/transformers/__init__.py", 1, "<module>")
    profile = _chain(make_profile, (USER, LOOP, OPERATOR), (USER, LOOP), (USER, imported))
    profile = _sampled(profile, {6: 500, 8: 5_000})
    found = library_time(profile)
    assert found is None  # a twelfth of the time is no more than a remainder
    found = library_time(_sampled(profile, {6: 500, 8: 2_000}))
    assert found is not None
    assert found.time_ns == 510
    assert found.packages == (("lightning", 510),)


def test_user_lines_that_share_the_time_need_no_packages(
    make_profile: MakeProfile,
) -> None:
    other = dataclasses.replace(USER, line=13)
    profile = _chain(make_profile, (USER, LOOP, OPERATOR), (other, LOOP, OPERATOR))
    assert library_time(profile) is None
    # Nor does a line whose time is exclusive or only in a framework.
    assert library_time(_chain(make_profile, (USER, OPERATOR))) is None
    assert library_time(_chain(make_profile, (USER, LINEAR, OPERATOR))) is None
    assert library_time(_chain(make_profile)) is None


def test_a_package_that_calls_the_line_is_not_below_it(make_profile: MakeProfile) -> None:
    runner = _line(f"{SITE}/_pytest/python.py", 160)
    assert library_time(_chain(make_profile, (runner, USER, OPERATOR))) is None
    found = library_time(_chain(make_profile, (runner, USER, MODEL, OPERATOR)))
    assert found is not None
    assert found.packages == (("transformers", 10),)


def test_a_program_without_a_user_line_is_all_below(make_profile: MakeProfile) -> None:
    found = library_time(_chain(make_profile, (LOOP, MODEL, OPERATOR)))
    assert found is not None
    assert found.line is None
    assert found.packages == (("transformers", 10),)


def test_the_standard_library_counts_where_no_package_and_no_operator_does(
    make_profile: MakeProfile,
) -> None:
    spawn = _line(f"{STANDARD}/multiprocessing/spawn.py", 122)
    string = _line("<string>", 1, "<module>")
    plain = _sampled(_chain(make_profile, (string, spawn)), {3: 700})
    found = library_time(plain)
    assert found is not None
    assert found.line == string
    assert found.packages == (("multiprocessing", 700),)
    installed = _sampled(_chain(make_profile, (string, spawn, LOOP)), {4: 700})
    found = library_time(installed)
    assert found is not None
    assert found.packages == (("lightning", 700),)


def test_idle_threads_do_not_count_as_time_of_the_program(make_profile: MakeProfile) -> None:
    worker = Frame(FrameKind.THREAD, "worker")
    queue = _line(f"{SITE}/tqdm/monitor.py", 60)
    frames = [ROOT, MAIN, USER, LOOP, worker, queue]
    profile = _sampled(make_profile([0, 0, 1, 2, 0, 4], frames), {3: 100})
    profile = _sampled(profile, {5: 10_000}, SAMPLED_WAIT_TIME_NS)
    found = library_time(profile)
    assert found is not None
    assert found.line == USER
    assert found.packages == (("lightning", 100),)
