"""How the processes of a job ended, from what their parents saw."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.child_ends import SECTION, ChildEnds, SeenEnd, decode
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.summaries.ends import End, ends_of
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

EMPTY = random_profile(2, seed=0, depth=2)
S = 10**9


def process(pid: int, **facts: Any) -> Profile:
    """Return the profile of a child of process 1 that covers the seconds 1 to 2."""
    defaults = {"hostname": "a", "parent_pid": 1, "start_unix_ns": S, "wall_ns": S}
    run = RunInfo(pid=pid, **{"exit_reason": "snapshot", **defaults, **facts})
    return dataclasses.replace(EMPTY, run=run)


def parent(
    running: tuple[int, ...] = (), *, is_last: bool = True, **ended: tuple[int, int]
) -> Profile:
    """Return the profile of a parent, from 0 s to 9 s; `ended` has ``p2=(status, second)``."""
    seen = {int(name[1:]): SeenEnd(status, at * S) for name, (status, at) in ended.items()}
    look = ChildEnds(is_last, 9 * S, frozenset(running), seen)
    reason = "exit" if is_last else "snapshot"
    profile = process(1, parent_pid=0, exit_reason=reason, start_unix_ns=1, wall_ns=9 * S - 1)
    return profile.with_section(SECTION, look.encode())


@pytest.mark.parametrize(
    ("above", "end"),
    [
        (parent(p2=(-9, 4)), End("killed by SIGKILL", -9, 2 * S)),
        (parent(p2=(-99, 4)), End("killed by signal 99", -99, 2 * S)),
        (parent(p2=(0, 2)), End("exited 0", 0, 0)),
        (parent(running=(2,)), End("still running", None, 7 * S)),
        (parent(), End("crashed, killed or os._exit", None, 7 * S)),
        (parent(is_last=False), End("running or killed", None, 7 * S)),
        (parent(is_last=False, p2=(-15, 3)), End("killed by SIGTERM", -15, S)),
    ],
)
def test_what_the_parent_saw_is_told_of_a_process_that_left_a_snapshot(
    above: Profile, end: End
) -> None:
    assert ends_of([above, process(2)])[1] == end


def test_nothing_is_told_that_nobody_saw() -> None:
    unknown = End("running or killed", None, 0)
    assert ends_of([process(2)]) == [unknown]
    elsewhere = process(2, hostname="b")
    assert ends_of([parent(p2=(-9, 4)), elsewhere])[1] == unknown
    went_on = process(2, wall_ns=30 * S)  # after its parent closed the profile
    assert ends_of([parent(running=(2,)), went_on])[1] == unknown
    began_later = process(2, start_unix_ns=5 * S)  # with the number of the process that ended
    ends = ends_of([parent(is_last=False, p2=(-9, 4)), process(2), began_later])
    assert [each.text for each in ends[1:]] == ["killed by SIGKILL", "running or killed"]


@pytest.mark.parametrize(
    ("reason", "status", "text"),
    [
        ("exit", 0, ""),
        ("exit", 3, "exited 3"),
        ("exit", -11, "killed by SIGSEGV"),
        ("exception: ValueError", 1, "exception: ValueError"),
    ],
)
def test_a_profile_that_was_closed_covers_the_process(reason: str, status: int, text: str) -> None:
    child = process(2, exit_reason=reason)
    assert ends_of([parent(p2=(status, 4)), child])[1] == End(text, status, None)


@pytest.mark.parametrize("payload", [b"{", b"[]", b'{"version": 1}', b'{"version": 2}'])
def test_a_damaged_section_is_an_error(payload: bytes) -> None:
    with pytest.raises(ProfileDataError, match="cannot read section 'child_ends': "):
        decode(payload)
