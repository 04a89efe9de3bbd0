"""When windows open, so that the processes of a job see the same collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext import _native
from deepcontext.collectors.jax.sampling import CollectiveTurns

if TYPE_CHECKING:
    import pytest

GAP_S = 1.0
STEP_S = 0.02  # 50 launches from one window to the next: every 64th


class Process:
    """A process that launches a step every 20 ms and asks whenever a window is due."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns = CollectiveTurns()
        self._patch = monkeypatch

    def opened_at(self, due: list[float], *, step_s: float = STEP_S) -> list[int]:
        """Return the launches at which windows opened that became due at these times."""
        opened = []
        for start in due:
            now = start
            self.turns.forget()
            while not self._is_now(now, step_s):
                now += 0.001
            opened.append(int(now / step_s))
        return opened

    def _is_now(self, now: float, step_s: float) -> bool:
        launches = int(now / step_s)
        self._patch.setattr(_native, "jax_collective_launches", lambda: launches)
        return self.turns.is_now(now, GAP_S)


def test_processes_whose_windows_are_due_at_other_times_open_them_at_the_same_launches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = Process(monkeypatch)
    first.opened_at([0.1])  # asked first
    second = Process(monkeypatch)
    second.opened_at([0.3])
    opened = first.opened_at([10.0, 20.0, 30.0])
    assert opened == second.opened_at([10.2, 20.1, 29.9])
    assert all(launch % 64 == 0 for launch in opened)


def test_a_window_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(monkeypatch)
    process.opened_at([1.0])
    assert process.opened_at([10.0], step_s=1e9) == [0]


def test_programs_without_collectives_have_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "jax_collective_launches", lambda: 0)
    turns = CollectiveTurns()
    assert turns.is_now(5.0, GAP_S)
    assert not turns.is_waiting
