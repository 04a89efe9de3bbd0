"""Steps that take longer are found with their number and line, and programs without any are silent."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.metric import SLOW_STEP_TIME_NS
from deepcontext.profiler.model.metric_values import exclusive_or_zeros
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.occasions import OccasionKind
from deepcontext.profiler.summaries.slow_steps import _period, slow_steps
from deepcontext.profiler.summaries.step_history import SlowStep

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from deepcontext.analyzers import Finding

PROGRAM = """\
import sys
import time

import deepcontext

plant = sys.argv[1]


def work():
    time.sleep(0.004)


def plants(step):
    if plant == "stall" and step % 25 == 0:
        time.sleep(0.1)
    if plant == "one" and step == 130:
        time.sleep(0.5)
    if plant == "drift":
        time.sleep(0.0002 * step)
    if plant == "start" and step < 60:
        time.sleep(0.03)
    if plant == "checkpoint" and step % 30 == 0:
        checkpoint(0.1)
    if plant == "late" and step % 60 == 0:
        checkpoint(0.25)


def checkpoint(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))


def in_turns(step):
    if step // 10 % 2:
        time.sleep(0.0002 * step)
    else:
        time.sleep(0.0002 * step)


for step in range(1, 241):
    work()
    plants(step)
    if plant == "turns":
        in_turns(step)
    deepcontext.step()
"""


def findings(folder: Path, plant: str, *only: str) -> list[Finding]:
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    words = ["profile", "-q", "-o", "run.dcprof", "train.py", plant]
    subprocess.run([sys.executable, "-m", "deepcontext", *words], cwd=folder, check=True)
    return list(run_analyzers(Profile.load(folder / "run.dcprof"), only=["slow_steps", *only]))


@pytest.mark.long
@pytest.mark.parametrize(
    ("plant", "line", "words"),
    [
        ("stall", "15", "every 25th step takes"),
        ("one", "17", "step 130 took"),
        ("drift", "19", "steps get slower"),
        ("turns", "3[68]", "steps get slower"),
        ("start", "21", "the first|steps get faster"),
        ("checkpoint", "3[01]", "every 30th step takes"),
    ],
)
def test_planted(tmp_path: Path, plant: str, line: str, words: str) -> None:
    (found,) = findings(tmp_path, plant)
    assert re.search(words, found.title)
    assert re.search(rf"train\.py:{line}\b", found.title)
    assert found.gain is not None
    assert found.nodes


def test_the_samples_of_a_few_slow_steps_do_not_show_growth(tmp_path: Path) -> None:
    """Their mean lies late: the first of them comes after a quarter of the steps."""
    found = findings(tmp_path, "late", "host_work")
    assert any("every 60th step takes" in each.title for each in found)
    assert not any("more from step to step" in each.title for each in found)


def test_a_program_with_even_steps_is_silent(tmp_path: Path) -> None:
    assert findings(tmp_path, "none") == []


COMPILES = """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames="rate")
def train_step(weights, rate):
    return weights - rate * jnp.sin(weights @ weights)


weights = jnp.ones((64, 64))
for step in range(4000):
    weights = train_step(weights, rate=0.1 / (1 + step // 800)).block_until_ready()
"""


def test_steps_that_compile_are_not_in_what_slow_steps_take(tmp_path: Path) -> None:
    """They are no steps of the steady state, in which no line takes longer than its steps do."""
    (tmp_path / "train.py").write_text(COMPILES, encoding="utf-8")
    words = ["profile", "-q", "-o", "run.dcprof", "train.py"]
    subprocess.run([sys.executable, "-m", "deepcontext", *words], cwd=tmp_path, check=True)
    profile = basis_of(Profile.load(tmp_path / "run.dcprof"))
    assert OccasionKind.COMPILATION in {each.kind for each in profile.occasions}
    found = slow_steps(profile.profile)
    assert (
        sum(each.excess_ns for each in (found.lines if found else ()))
        <= profile.profile.run.wall_ns
    )


def steps(numbers: Iterable[int], duration_ns: int) -> list[SlowStep]:
    return [SlowStep(int(number), 0, duration_ns) for number in numbers]


def test_a_period_is_found_among_steps_that_are_slow_at_random() -> None:
    generator = np.random.default_rng(1)
    noise = generator.choice(np.arange(10, 1000), 45, replace=False)
    slow = steps(noise, 8) + steps(range(70, 1000, 50), 100)
    assert _period(slow, 0) == (50, 20)


def test_steps_that_are_slow_by_chance_make_no_divisor_a_period() -> None:
    assert _period(steps([*range(30, 240, 10), 25, 35, 45, 225], 100), 0) == (10, 0)


def test_steps_of_a_divisor_that_are_barely_slow_do_not_shorten_the_period() -> None:
    slow = steps(range(30, 300, 30), 100) + steps(range(15, 300, 30), 12)
    assert _period(slow, 8) == (30, 0)


def test_a_missing_step_and_a_slower_one_hide_no_period() -> None:
    slow = steps([130], 900) + steps(set(range(50, 1000, 50)) - {400}, 100)
    assert _period(slow, 0) == (50, 0)


def test_steps_that_are_slow_at_random_have_no_period() -> None:
    generator = np.random.default_rng(2)
    found = 0
    for _ in range(100):
        numbers = generator.choice(np.arange(10, 500), 40, replace=False)
        slow = [SlowStep(int(each), 0, int(generator.integers(10, 99))) for each in numbers]
        found += _period(slow, 0)[0] > 0
    assert found <= 1


QUEUES = """\
import jax
import jax.numpy as jnp


@jax.jit
def train_step(weights):
    for _ in range(4):
        weights = jnp.tanh(weights @ weights / 40)
    return weights, weights.sum()


weights, total = train_step(jnp.ones((700, 700)))
total.block_until_ready()
for step in range(1, 161):
    weights, total = train_step(weights)
    if step % 40 == 0:
        print(float(total))
"""


@pytest.mark.long
def test_a_wait_for_the_work_that_other_steps_queued_is_no_slow_step(tmp_path: Path) -> None:
    """Steps that only queue work are short, and the step that reads a result waits for all of them."""
    (tmp_path / "train.py").write_text(QUEUES, encoding="utf-8")
    words = ["profile", "-q", "-o", "run.dcprof", "train.py"]
    subprocess.run([sys.executable, "-m", "deepcontext", *words], cwd=tmp_path, check=True)
    found = slow_steps(Profile.load(tmp_path / "run.dcprof"))
    assert found is None or found.lines == ()


SETS_UP = """\
import time

import deepcontext

time.sleep(0.4)
for step in range(400):
    if step == 200:
        time.sleep(0.002)
    deepcontext.step()
time.sleep(0.1)
"""


def test_the_setup_is_in_no_slow_step_that_ends_before_the_next_sample(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SETS_UP, encoding="utf-8")
    words = ["profile", "-q", "-o", "run.dcprof", "train.py"]
    subprocess.run([sys.executable, "-m", "deepcontext", *words], cwd=tmp_path, check=True)
    profile = Profile.load(tmp_path / "run.dcprof")
    assert profile.run.steps == 400
    assert exclusive_or_zeros(profile, SLOW_STEP_TIME_NS.name).sum() < 100_000_000
