"""An evaluation and a late compilation are in no figure of a usual step, and are named with their steps."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from deepcontext.analyzers.questions import slow_steps as question
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.other_models import other_models
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.kept_steps import path_excesses, slowest_kept
from deepcontext.profiler.summaries.occasions import OccasionKind
from deepcontext.profiler.summaries.slow_steps import slow_steps
from deepcontext.ui.account_texts import occasions_text
from deepcontext.ui.cli.app import main
from deepcontext.ui.sections.account import basis_to_dict
from deepcontext.ui.step_texts import path_text
from tests.profiled import profiled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.summaries.occasions import Occasion

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "report-json.md"
EVALUATES = """\
import time

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(64, 64)


def evaluate():
    with torch.no_grad():
        for _ in range(600):
            model(batch).square().mean()


for step in range(1, 201):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.002)
    if step % 25 == 0:
        evaluate()
    if step == 90:
        time.sleep(1)
"""
TWO_TRAININGS = """\
import time

import torch
from torch import nn

torch.set_num_threads(1)
batch = torch.randn(16, 64)


def train(model, steps, pause_s):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(pause_s)


def small():
    train(nn.Sequential(nn.Linear(64, 64), nn.ReLU()), 120, 0.002)


def large():
    train(Twice(), 100, 0.02)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, batch):
        return self.layer(self.layer(batch))


for part in sys.argv[1].split():
    {"small": small, "large": large}[part]()
"""
COMPILES = """\
import jax
import jax.numpy as jnp


def loss(weight, batch):
    return jnp.square(jnp.tanh(batch @ weight)).mean()


@jax.jit
def train_step(weight, batch):
    return weight - 0.1 * jax.grad(loss)(weight, batch)


@jax.jit
def evaluate(weight, batch):
    for _ in range(40):
        batch = jnp.tanh(batch @ weight)
    return batch.mean()


weight, batch = jnp.ones((512, 512)), jnp.ones((512, 512))
for step in range(1, 61):
    weight = train_step(weight, batch).block_until_ready()
    if step == 40:
        evaluate(weight, batch).block_until_ready()
"""


IN_TURN = """
import torch

torch.set_num_threads(1)
models = [torch.nn.Sequential(torch.nn.Linear(512, 512)) for _ in range(3)]
batch = torch.randn(64, 512)


def run(model):
    for _ in range(6):  # so few that each window has all models
        model(batch)


with torch.no_grad():
    for _ in range(100):
        run(models[0])
        run(models[1])
        run(models[2])
"""


def _profile(folder: Path, program: str) -> Profile:
    return profiled(folder, program, "-q").profile


@pytest.fixture(scope="module")
def evaluates(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return _profile(tmp_path_factory.mktemp("evaluates"), EVALUATES)


@pytest.fixture(scope="module")
def compiles(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return _profile(tmp_path_factory.mktemp("compiles"), COMPILES)


def _only(profile: Profile, kind: OccasionKind) -> Occasion:
    (found,) = (each for each in basis_of(profile).occasions if each.kind is kind)
    return found


@pytest.mark.long
def test_an_evaluation_is_named_with_its_period_and_line(evaluates: Profile) -> None:
    found, basis = _only(evaluates, OccasionKind.EVALUATION), basis_of(evaluates)
    assert found.frame is not None
    assert (found.name, found.frame.line, found.period) == ("Sequential", 24, 25)
    assert all(number % 25 == 1 for number in found.numbers)
    # One at the edge of the steady state may be counted on either side.
    assert found.steps == pytest.approx(basis.steps / 25, abs=1.5)
    text = occasions_text(basis)
    assert text.startswith(f"every 25th step ({found.steps}) runs an evaluation (Sequential): ")
    assert text.endswith(" each at program.py:24")


def test_an_evaluation_is_in_no_figure_of_a_usual_step(evaluates: Profile) -> None:
    found, basis = _only(evaluates, OccasionKind.EVALUATION), basis_of(evaluates)
    assert basis.rest is not None
    usual = {place.frame.line for place in account(basis.profile).lines if place.frame}
    rest = {place.frame.line for place in account(basis.rest).lines if place.frame}
    assert 19 in usual
    assert usual.isdisjoint({15, 24})
    assert {15} < rest
    steady = evaluates.steady()
    assert steady is not None
    assert basis.profile.run.wall_ns == steady.run.wall_ns - found.time_ns
    for metric in ("host_time_ns", "sampled_wait_time_ns"):
        parts = (basis.profile, basis.rest)
        assert sum(int(each.exclusive(metric).sum()) for each in parts) == pytest.approx(
            int(evaluates.exclusive(metric).sum()), rel=1e-6
        )
    assert basis_of(basis.profile) is basis
    assert basis_of(steady).profile.run.wall_ns == basis.profile.run.wall_ns


def test_an_evaluation_of_a_job_is_in_no_figure_of_a_usual_step(evaluates: Profile) -> None:
    one = _only(evaluates, OccasionKind.EVALUATION)
    runs = (replace(evaluates.run, rank=rank, ranks=2, pid=100 + rank) for rank in range(2))
    job = merge({f"rank {run.rank}": replace(evaluates, run=run) for run in runs})
    found, basis = _only(job, OccasionKind.EVALUATION), basis_of(job)
    assert (found.name, found.frame) == (one.name, one.frame)
    assert found.steps == one.steps
    assert found.time_ns == pytest.approx(2 * one.time_ns, rel=0.01)
    assert basis.step_ns == pytest.approx(basis_of(evaluates).step_ns, rel=0.01)
    assert occasions_text(basis).split()[-4:] == occasions_text(basis_of(evaluates)).split()[-4:]


def test_the_report_for_machines_names_it_with_documented_keys(evaluates: Profile) -> None:
    (said,) = basis_to_dict(evaluates)["occasions"]
    page = PAGE.read_text(encoding="utf-8")
    assert list(said) == re.findall(r"^\| `basis\.occasions\.(\w+)` \|", page, re.MULTILINE)
    assert (said["kind"], said["line"], said["period"]) == ("evaluation", 24, 25)


def test_a_stall_beside_evaluations_is_a_slow_step(evaluates: Profile) -> None:
    found = slow_steps(basis_of(evaluates).profile)
    assert found is not None
    assert all(each.number % 25 != 1 for each in found.slow)
    assert found.lines[0].frame.line == 26
    said = [each for each in question.find(basis_of(evaluates).profile) if each.key == "slow_steps"]
    assert [each.evidence["slowest_step"] for each in said] == [91]


def test_a_late_compilation_is_no_cost_of_a_step(compiles: Profile) -> None:
    found, basis = _only(compiles, OccasionKind.COMPILATION), basis_of(compiles)
    assert found.frame is not None
    assert (found.frame.line, found.steps) == (25, 1)
    assert account(basis.profile).of(Cause.COMPILING) == 0
    assert basis.rest is not None
    assert account(basis.rest).of(Cause.COMPILING) >= found.time_ns
    evaluation = _only(compiles, OccasionKind.EVALUATION)
    assert (evaluation.name, evaluation.steps) == ("jit(evaluate)", 1)


def test_the_paths_of_a_slow_step_are_ranked(
    compiles: Profile, capsys: pytest.CaptureFixture[str]
) -> None:
    (number,) = _only(compiles, OccasionKind.COMPILATION).numbers
    (step,) = (each for each in compiles.exemplars if each.number == number)
    found = [path_text(compiles, each.node) for each in path_excesses(compiles, step)]
    assert "program.py:25 > jit(evaluate) > jax: compiling" in found
    assert main(["report", "--steps", compiles.source]) == 0
    slowest = slowest_kept(compiles)[0]
    assert f"Why step {slowest.number} is slow" in capsys.readouterr().out


def test_without_kept_steps_nothing_is_occasional(evaluates: Profile) -> None:
    left = {name: each for name, each in evaluates.sections.items() if name != "exemplars"}
    bare = Profile(
        evaluates.frames, evaluates.tree, evaluates.metrics, evaluates.run, evaluates.trust, left
    )
    assert basis_of(bare).occasions == ()
    assert basis_of(bare).rest is basis_of(bare).setup


def test_what_a_third_of_the_steps_does_is_a_part_of_the_mean_step(tmp_path: Path) -> None:
    assert basis_of(_profile(tmp_path, IN_TURN)).occasions == ()


@pytest.mark.long
@pytest.mark.parametrize("order", ["small large", "large small"])
def test_the_steady_state_is_of_one_training(tmp_path: Path, order: str) -> None:
    profile = _profile(tmp_path, f"import sys; sys.argv = ['train.py', '{order}']\n{TWO_TRAININGS}")
    basis = basis_of(profile)
    is_last = order.endswith("large")
    assert (basis.first_step > 100) is is_last
    assert basis.first_step + basis.steps <= (221 if is_last else 111)
    assert basis.step_ns > 15e6
    (other,) = basis.occasions
    assert (other.kind, other.name) == (OccasionKind.OTHER, "Sequential")
    assert other.steps >= 80
    assert "steps run Sequential" in occasions_text(basis)
    assert slow_steps(profile) is None or not list(question.find(basis.profile))


def test_models_that_take_turns_are_of_one_training() -> None:
    def others(calls: Sequence[tuple[int, int]]) -> Mapping[int, int]:
        found = np.array(calls)
        return other_models([10] * len(calls), [100] * len(calls), found, found)

    assert others([(9, 1), (0, 5), (9, 1), (0, 5)]) == {}
    # A window across the border is of neither.
    assert others([(0, 5), (2, 4), (9, 0), (9, 0)]) == {0: 1, 1: 1}
    assert others([(9, 0), (9, 0), (2, 4), (0, 5)]) == {2: 1, 3: 1}
    assert others([(0, 0), (0, 0)]) == {}
