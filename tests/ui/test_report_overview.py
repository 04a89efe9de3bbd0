"""The default report has at most 80 lines, and names what it omits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.trust import TrustReport
from deepcontext.ui.report import render_report

if TYPE_CHECKING:
    from pathlib import Path


def _text(profile: Profile, width: int = 100, **options: Any) -> str:
    file = io.StringIO()
    render_report(profile, console=Console(file=file, width=width), **options)
    return file.getvalue()


def _large(make_profile: Any, warnings: int = 0) -> Profile:
    """Return a profile with fifty modules, lines and operators, in three phases."""
    parents, frames, phases = [0], [Frame(FrameKind.ROOT, "")], [Phase.NONE]
    times = {}
    kinds = [Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER]
    for number in range(50):
        top = len(frames)
        parents += [0, top, top + 1]
        frames += [
            Frame(FrameKind.PYTHON, "main", "/me/train.py", number + 1),
            Frame(FrameKind.MODULE, f"Linear 'fc{number}'"),
            Frame(FrameKind.OPERATOR, f"aten::mm{number}"),
        ]
        phases += [Phase.NONE, Phase.NONE, kinds[number % 3]]
        times[top + 2] = (number + 1) * 10**6
    trust = TrustReport(notes=tuple(f"warning {n}" for n in range(warnings)))
    made: Profile = make_profile(parents, frames, phases=phases, host_time_ns=times, trust=trust)
    return made


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_at_most_eighty_lines(make_profile: Any, training_folder: Path, width: int) -> None:
    for profile in (Profile.load(training_folder / "train.dcprof"), _large(make_profile)):
        lines = _text(profile, width).splitlines()
        assert 50 < len(lines) <= 80
        assert lines[-1] == "next: --full for every table, --json for programs"
    assert len(_text(_large(make_profile), width, full=True).splitlines()) > 80


def test_messages_of_collectors_are_shown_where_there_is_room(training_folder: Path) -> None:
    assert "the program did not import torch" in _text(
        Profile.load(training_folder / "empty.dcprof")
    )


def test_omitted_tables_are_named(make_profile: Any) -> None:
    text = _text(_large(make_profile, warnings=50))
    assert len(text.splitlines()) <= 80
    (left_out,) = [line for line in text.splitlines() if line.startswith("left out: ")]
    assert "Where the time goes" in text
    assert "Modules" not in text
    assert "modules" in left_out


@pytest.mark.parametrize("warnings", [20, 30, 40, 50, 60])
def test_room_is_filled_with_what_fits_before_a_section_is_omitted(
    make_profile: Any, warnings: int
) -> None:
    lines = _text(_large(make_profile, warnings)).splitlines()
    smallest = 5  # a blank line, a title, and three rows
    assert 80 - smallest - 2 <= len(lines) <= 80 or not any("left out" in each for each in lines)


def test_warnings_and_findings_are_never_omitted(make_profile: Any) -> None:
    text = _text(_large(make_profile, warnings=200))
    assert all(f"! warning {number}\n" in text for number in range(200))


def test_a_limit_selects_the_full_report(make_profile: Any) -> None:
    text = _text(_large(make_profile), limit=40)
    assert "Operators (40 of 50)" in text
