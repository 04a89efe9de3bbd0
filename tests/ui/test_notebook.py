"""Profiles in notebooks: `%load_ext deepcontext`, `%%deepcontext`, and what a cell shows."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext.profiler.model.profile import Profile as PlainProfile
from deepcontext.ui.notebook import profile_html

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("IPython")


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A shell of IPython that keeps what is displayed in `shell.displayed`."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell.instance(config=config)
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(
        made.display_pub, "publish", lambda data, *_args, **_more: shown.append(data)
    )
    made.displayed = shown
    made.run_line_magic("load_ext", "deepcontext")
    yield made
    InteractiveShell.clear_instance()


def test_a_cell_is_profiled_and_shown(shell: Any, tmp_path: Path) -> None:
    path = tmp_path / "cell.dcprof"
    shell.run_cell(f"%%deepcontext --var found -o {path}\nvalue = sum(range(10))")
    assert shell.user_ns["value"] == 45
    profile = shell.user_ns["found"]
    assert profile.run.exit_reason == "exit"
    assert len(deepcontext.Profile.load(path).tree) == len(profile.tree)
    assert shell.displayed[-1]["text/html"].startswith("<iframe srcdoc=")


def test_a_cell_takes_the_options_of_a_session(shell: Any) -> None:
    shell.run_cell("%%deepcontext --var found --cpu-rate 0 --no-memory\npass")
    options = shell.user_ns["found"].run.options
    assert (options["cpu_rate_hz"], options["memory"]) == ("0.0", "False")


def test_a_cell_that_fails_is_profiled_up_to_the_failure(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("%%deepcontext --var found\n1 / 0")
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert shell.user_ns["found"].run.exit_reason == "exception: ZeroDivisionError"
    shell.run_cell("%%deepcontext\npass")
    assert len(shell.displayed) == 2


@pytest.mark.parametrize("line", ["--nope", "-o", "'open", "--cpu-rate -1"])
def test_a_wrong_option_is_one_line_and_runs_nothing(
    shell: Any, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"%%deepcontext {line}\nran = True")
    captured = capsys.readouterr()
    assert "UsageError" in captured.out + captured.err
    assert "Traceback" not in captured.out
    assert "ran" not in shell.user_ns


def test_help_runs_nothing(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%deepcontext --help\nran = True")
    assert "usage: %%deepcontext" in capsys.readouterr().out
    assert "ran" not in shell.user_ns


def test_a_profile_shows_itself(training_folder: Path) -> None:
    profile = deepcontext.Profile.load(training_folder / "train.dcprof")
    shown = profile._repr_html_()
    assert shown is not None
    page = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts" .*</iframe>', shown)
    assert page is not None
    assert html.unescape(page[1]).startswith("<!doctype html>")


def test_a_name_cannot_leave_the_frame(training_folder: Path) -> None:
    profile = PlainProfile.load(training_folder / "train.dcprof")
    shown = profile_html(profile, '"><script>alert(1)</script>')
    assert "<script>" not in shown
