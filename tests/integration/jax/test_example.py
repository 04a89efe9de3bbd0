"""The transformer example: all of its device time found, and split as its HLO says."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import deepcontext
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.jax import programs as jax_programs
from tests.ui.test_page_size import check_size

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("jax")
EXAMPLE = Path(__file__).parents[3] / "examples" / "jax_transformer.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[deepcontext.Profile, str]:
    """The example's profile, and what was printed at the end of the run."""
    output = tmp_path_factory.mktemp("example") / "example.dcprof"
    command = [sys.executable, "-m", "deepcontext", "profile", "-o", str(output)]
    done = subprocess.run(
        [*command, "--jax-exact", str(EXAMPLE), "--steps", "30"],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "step   20" in done.stdout
    return deepcontext.Profile.load(output), done.stderr


@pytest.fixture(scope="module")
def profile(run: tuple[deepcontext.Profile, str]) -> deepcontext.Profile:
    return run[0]


@pytest.mark.long
def test_the_end_of_the_run_shows_the_device_time_as_a_tree(
    run: tuple[deepcontext.Profile, str],
) -> None:
    profile, printed = run
    shown = basis_of(profile).profile
    accounting = jax_programs.device_accounting(shown)
    share = re.search(r"; ([\d.]+) % of it is on your lines", printed)
    assert share is not None
    assert float(share[1]) == pytest.approx(
        100 * accounting.on_user_line / accounting.total, abs=0.1
    )
    tree = printed[share.end() :]
    total = shown.inclusive("device_time_ns")
    rows = re.findall(r"^ *([\d.]+) %.* > jit\(train_step\)", tree, re.MULTILINE)
    (node,) = _nodes(profile, "jit(train_step)")
    assert float(rows[0]) == pytest.approx(100 * total[node] / total[0], abs=0.1)
    for name in ("backward", "forward", "feed_forward jax_transformer.py:68"):
        assert name in tree


def test_the_page_is_little_larger_than_the_profile(
    run: tuple[deepcontext.Profile, str],
) -> None:
    check_size(Path(run[0].source))


def test_device_time_lies_on_lines_of_the_example(profile: deepcontext.Profile) -> None:
    accounting = jax_programs.device_accounting(_without_interruptions(profile))
    assert accounting.total > 0
    assert accounting.on_user_line >= 0.97 * accounting.total
    assert accounting.inserted <= 0.10 * accounting.total  # jax 0.8: 5 to 9 %
    accounting = jax_programs.device_accounting(profile)
    assert accounting.nowhere + accounting.on_user_line == accounting.total


def _without_interruptions(profile: deepcontext.Profile) -> deepcontext.Profile:
    """Each operation at its shortest time: what else the machine did is not in it."""
    rows = profile.metrics["device_time_ns"]
    assert rows.minimum is not None
    shortest = dataclasses.replace(rows, total=rows.count.astype(np.int64) * rows.minimum)
    metrics = {name: profile.metrics[name] for name in profile.metrics}
    return dataclasses.replace(profile, metrics={**metrics, "device_time_ns": shortest})


def test_every_launch_of_the_example_is_counted(profile: deepcontext.Profile) -> None:
    functions = {f.name: f for f in jax_programs.jitted_functions(profile)}
    assert functions["jit(train_step)"].launches == 30
    assert functions["jit(evaluate)"].launches == 1
    (report,) = [c for c in profile.trust.collectors if c.name == "jax"]
    # A program that runs once may lie across the edge of two windows: it is counted, or timed from a part.
    assert not report.reason or "never ran completely while sampled: " in report.reason
    assert int(report.details["executions_without_launch"]) == 0
    assert int(report.details["unmatched"]) == 0
    assert report.details["sampled_executions"] == report.details["sampled_launches"]


def _nodes(profile: deepcontext.Profile, function: str) -> list[int]:
    return [
        node
        for node in range(len(profile.tree))
        if profile.frame(node).kind == FrameKind.OPERATOR and profile.frame(node).name == function
    ]


def _op_names(profile: deepcontext.Profile) -> Iterator[tuple[str, str]]:
    for program in (jax_programs.section(profile) or {})["programs"]:
        if program["module"] == "jit_train_step":
            for operation in program["operations"]:
                yield operation["name"], operation["op_name"]


def test_phases_are_those_of_the_op_names(profile: deepcontext.Profile) -> None:
    """Counted anew, from the names that jax gave the operations."""
    expected = {}
    for name, op_name in _op_names(profile):
        if "transpose(jvp" in op_name:
            expected[name] = Phase.BACKWARD
        elif re.search(r"\bjvp\(", op_name):
            expected[name] = Phase.FORWARD
        else:
            expected[name] = Phase.OTHER
    own = _without_interruptions(profile).exclusive("device_time_ns")
    (jit,) = _nodes(profile, "jit(train_step)")
    by_phase = dict.fromkeys((Phase.FORWARD, Phase.BACKWARD, Phase.OTHER), 0)
    counted = dict.fromkeys(by_phase, 0)
    for node in range(jit, int(profile.tree.subtree_end[jit])):
        if own[node]:
            by_phase[Phase(int(profile.tree.phase[node]))] += int(own[node])
            counted[expected[profile.frame(node).name]] += int(own[node])
    assert by_phase == counted
    assert by_phase[Phase.BACKWARD] > by_phase[Phase.FORWARD] > 0


def test_the_tree_goes_from_the_loop_to_the_models_lines(profile: deepcontext.Profile) -> None:
    own = profile.exclusive("device_time_ns")
    texts = [
        [f.name for f in profile.path(node) if f.file in {"", str(EXAMPLE)}]
        for node in range(len(profile.tree))
        if own[node]
    ]
    wanted = ["train", "jit(train_step)", "backward", "train_step", "loss_of", "forward"]
    assert any(_in_order([*wanted, "transformer_block", "attention"], text) for text in texts)


def _in_order(wanted: list[str], text: list[str]) -> bool:
    rest = iter(text)
    return all(name in rest for name in wanted)
