"""Samples say in which step they were taken: before the steps, in all of them, or after the last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import deepcontext
from deepcontext.analyzers import run_analyzers
from deepcontext.analyzers.shared.repeated_lines import last_step, repeated

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

STEPS = 30
_LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


_LIBRARY = """
import time


def work_for(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
"""


# A library's, so that the lines which call it are the user's innermost ones.
_NAMES: dict[str, Any] = {}
exec(compile(_LIBRARY, "/usr/lib/site-packages/library.py", "exec"), _NAMES)
_work_for = _NAMES["work_for"]


def _train() -> Profile:
    weight = torch.nn.Parameter(torch.ones(8))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    deepcontext.start(None, memory=False)
    _work_for(0.4)  # before
    for _ in range(STEPS):
        weight.sum().backward()
        optimizer.step()
        _work_for(0.02)  # in the last line
    _work_for(0.4)  # after
    return deepcontext.stop()


def _line(comment: str) -> int:
    (line,) = [
        number
        for number, text in enumerate(_LINES, 1)
        if text.endswith(f"  # {comment}") and "_work_for(" in text
    ]
    return line


def test_only_the_line_of_the_loop_works_again_and_again() -> None:
    profile = _train()
    assert STEPS - 1 <= last_step(profile) <= STEPS
    found = repeated(profile)
    lines = {
        profile.frame(int(node)).line
        for node in found.nonzero()[0]
        if profile.frame(int(node)).name == "_train"
    }
    assert _line("in the last line") in lines
    assert not lines & {_line("before"), _line("after")}


def test_a_profile_without_steps_has_no_finding_about_them() -> None:
    deepcontext.start(None, memory=False)
    _work_for(0.2)
    profile = deepcontext.stop()
    assert last_step(profile) == 0
    assert run_analyzers(profile, only=["host_work"]) == ()
