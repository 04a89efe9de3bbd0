"""`deepcontext overhead`: the statistics, the check, and real measurements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcontext.errors import LimitExceededError
from deepcontext.ui.cli import app
from deepcontext.ui.cli.overhead import check_limit, summarize
from deepcontext.ui.cli.paired_runs import Interval, Pair, Run, ratio_interval

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text("import time; time.sleep(0.05)\n", encoding="utf-8")
    return path


def pair(plain_ns: int, profiled_ns: int) -> Pair:
    return Pair(Run(plain_ns, 100), Run(profiled_ns, 300), 7, 9, 11)


STEPS = """\
import time

import torch

import deepcontext

for _ in range(40):
    torch.zeros(8) + 1
    time.sleep(0.01)
    deepcontext.step()
"""


# -- statistics


def test_equal_ratios_have_an_interval_of_zero_width() -> None:
    assert ratio_interval(np.full(9, 1.25)) == Interval(1.25, 1.25, 1.25)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=40))
def test_interval_holds_the_median_and_lies_within_the_data(ratios: list[float]) -> None:
    interval = ratio_interval(np.array(ratios))
    assert min(ratios) <= interval.low <= interval.median <= interval.high <= max(ratios)


def test_interval_covers_the_true_median_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        interval = ratio_interval(generator.lognormal(mean=np.log(1.1), sigma=0.1, size=15))
        hits += interval.low <= 1.1 <= interval.high
    # 95 % nominal; a percentile bootstrap of a median of 15 values may differ by a few per cent.
    assert 0.88 <= hits / 200 <= 1.0


def test_one_slow_second_does_not_change_the_result() -> None:
    calm = summarize([pair(100, 110)] * 9)
    disturbed = summarize([*[pair(100, 110)] * 8, pair(100, 900)])
    assert disturbed.wall_ratio.median == calm.wall_ratio.median == 1.1


def test_summary_holds_medians_of_each_side() -> None:
    result = summarize([pair(100, 120), pair(200, 220), pair(300, 390)])
    assert (result.plain_wall_ns, result.profiled_wall_ns) == (200, 220)
    assert (result.plain_peak_rss_bytes, result.profiled_peak_rss_bytes) == (100, 300)
    assert (result.pairs, result.start_ns, result.stop_ns, result.file_bytes) == (3, 7, 9, 11)


# -- the check


def test_only_a_lower_bound_above_the_limit_fails() -> None:
    check_limit(Interval(1.05, 1.01, 1.08), 1.10, 15)
    check_limit(Interval(1.10, 1.10, 1.10), 1.10, 15)
    with pytest.raises(LimitExceededError) as raised:
        check_limit(Interval(1.214, 1.187, 1.239), 1.10, 20)
    assert raised.value.exit_code == 3
    assert str(raised.value) == (
        "the overhead is above the limit: wall time ratio 1.214, 95 % interval 1.187 to 1.239 "
        "over 20 pairs, limit 1.100; the lower bound decides"
    )


def test_median_above_the_limit_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    check_limit(Interval(1.15, 1.05, 1.3), 1.10, 15)
    assert capsys.readouterr().err.startswith("note: the median 1.150 is above the limit 1.100")


# -- measurements


def test_measured_and_printed(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["overhead", "--pairs", "2", str(script)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("overhead ")
    assert "95 % interval" in captured.out
    for word in ("wall time", "peak memory", "profile file", "stop and write"):
        assert word in captured.out
    assert captured.err == ""
    assert [path.name for path in script.parent.iterdir()] == ["program.py"]


def test_json_holds_what_was_measured(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = 64 * 1024 * 1024
    script.write_text(f"import time\nx = b'1' * {held}\ntime.sleep(0.1)\n", encoding="utf-8")
    assert app.main(["overhead", "--json", "--pairs", "3", str(script)]) == 0
    result = json.loads(capsys.readouterr().out)
    ratio = result["wall_ratio"]
    # What the ratio is depends on what else the machine does.
    assert 0.0 < ratio["low"] <= ratio["median"] <= ratio["high"]
    assert result["plain_wall_ns"] > 100_000_000
    # The interpreter alone needs about 10 MiB; the memory of the measuring process must not count.
    assert held < result["plain_peak_rss_bytes"] < held + 25 * 1024 * 1024
    assert result["profiled_peak_rss_bytes"] > result["plain_peak_rss_bytes"]
    assert 0 < result["stop_ns"] < result["profiled_wall_ns"]
    assert result["file_bytes"] > 100


@pytest.mark.long
def test_a_step_and_its_hooks_are_listed(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(STEPS, encoding="utf-8")
    assert app.main(["overhead", "--json", "--pairs", "1", str(script)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["step_ns"] > 10_000_000
    assert 0 < result["hooks_ns"] < result["step_ns"]
    script.write_text("pass\n", encoding="utf-8")
    assert app.main(["overhead", "--json", "--pairs", "1", str(script)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["step_ns"], result["hooks_ns"]) == (0, 0)


def test_memory_of_a_small_program_is_measured(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app.main(["overhead", "--json", "--pairs", "1", str(script)])
    result = json.loads(capsys.readouterr().out)
    # This process, with numpy and pytest loaded, needs far more.
    assert result["plain_peak_rss_bytes"] < 25 * 1024 * 1024


def test_limit_that_cannot_be_kept_exits_with_3(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["overhead", "--pairs", "2", "--max-ratio", "0.5", str(script)]
    assert app.main(words) == 3
    captured = capsys.readouterr()
    assert captured.out.startswith("overhead ")  # the measurement is not lost
    assert captured.err.startswith("error: the overhead is above the limit: wall time ratio ")
    assert app.main([*words[:4], "1000", str(script)]) == 0


def test_failing_program_is_an_error_with_the_end_of_its_standard_error(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text("print('a'); raise ValueError('broken')\n", encoding="utf-8")
    assert app.main(["overhead", "--pairs", "1", str(script)]) == 2
    error = capsys.readouterr().err
    assert "(exit code 1)" in error
    assert error.rstrip().endswith("ValueError: broken")


@pytest.mark.parametrize("code", ["import os; os.kill(os.getpid(), 9)", "raise SystemExit(3)"])
def test_killed_and_exiting_programs_are_errors(
    script: Path, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["overhead", "--pairs", "1", "-c", code]) == 2
    expected = "-9" if "kill" in code else "3"
    assert f"(exit code {expected})" in capsys.readouterr().err


def test_program_that_skips_its_exit_handlers_cannot_be_measured(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["overhead", "--pairs", "1", "-c", "import os; os._exit(0)"]) == 4
    assert "left no profile" in capsys.readouterr().err


def test_program_gets_its_arguments_and_an_empty_input(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import sys; assert sys.argv[1:] == ['--pairs', 'x'], sys.argv; assert not sys.stdin.read()"
    )
    assert app.main(["overhead", "--pairs", "1", "-c", code, "--pairs", "x"]) == 0


def test_missing_program_is_refused(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["overhead", "gone.py"]) == 2
    assert "no such file" in capsys.readouterr().err
