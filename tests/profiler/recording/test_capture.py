"""Warnings that a capture derives from its counters."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

from deepcontext import _native
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.recording.capture import Capture
from deepcontext.profiler.recording.usage import ProcessUsage

if TYPE_CHECKING:
    from deepcontext._native import Counters


def capture_with(**counters: int) -> Profile:
    """Return a profile that holds only these counters, read from the bytes of its file."""
    _native.begin(1000)
    _native.end()
    capture = Capture(
        reading=_native.read_tree([]),
        counters=cast("Counters", {**_native.counters(), **counters}),
        outcomes={},
        phase_rules=(),
        usage=ProcessUsage().read(),
        exit_reason="exit",
        steps=_native.steps(),
        forked_children=0,
        unrecorded_children=0,
        options={},
    )
    return Profile.from_bytes(capture.encode())


def test_without_losses_there_is_no_warning() -> None:
    assert capture_with().trust.notes == ()


@pytest.mark.parametrize(
    ("counter", "words"),
    [
        ("clock_steps_back", "clock stepped back 7 times"),
        ("contexts_refused", "7 look-ups of new call paths"),
        ("contexts_refused", "raise it with --node-limit"),
        ("names_refused", "7 events with new names count as '(other names)'"),
        ("functions_refused", "count as '(other functions)'"),
        ("threads_joined", "7 threads are joined as 'other threads'"),
        ("paths_cut", "7 Python paths were cut"),
    ],
)
def test_each_loss_is_a_warning(counter: str, words: str) -> None:
    trust = capture_with(**{counter: 7}).trust
    assert trust.counters[counter] == 7
    (note,) = trust.notes
    assert words in note


def test_a_capture_while_multiprocessing_is_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("multiprocessing.process")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert not capture_with().run.process_name
    exec("def parent_process(): return _parent_process", vars(module))  # the name is bound later
    assert not capture_with().run.process_name
