"""The workloads of benchmarks/evaluation: a step of each runs, and the paper's sizes fit together."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "evaluation"
WORKLOADS = sorted(
    path.stem for path in FOLDER.glob("*.py") if "\nSIZES = " in path.read_text(encoding="utf-8")
)
OF_TRANSFORMERS = {"llama", "gemma"}
# Parameters in millions, as published where the models are.
MILLIONS = {
    "conformer": 32.32,
    "dlrm": 539.27,
    "gemma": 2506,
    "gnn": 3.65,
    "llama": 8030,
    "nanogpt": 124.5,
    "resnet": 25.56,
    "transformer_big": 209.2,
    "unet": 7.756,
    "vit": 22.05,
}
# Tensors without memory: a model of 8 billion parameters has shapes only.
_TORCH = """
import importlib, json, sys
import torch, training
made = []
training.trained = lambda model, loss, rate=0: made.append(model) or loss
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    with torch.device("meta"):
        step = module.torch_step(module.SIZES["paper"])
        if name not in {"llama", "gemma", "conformer"}:  # they read values, or CTC needs some
            step()
    if name == "llama":
        made.append(step.__closure__[0].cell_contents)
print(json.dumps([sum(p.numel() for p in model.parameters()) for model in made]))
"""
_JAX = """
import importlib, json, sys
from math import prod
import layers
made, shapes = [], layers.shapes

class Enough(Exception):
    pass

def note(model, *batch, dtype=None, rate=0):
    made.append(sum(prod(shape) for shape, _ in shapes(model, *batch).values()))
    raise Enough

layers.trained = layers.initial = note
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    try:
        module.jax_step(module.SIZES["paper"])
    except Enough:
        pass
print(json.dumps(made))
"""


@pytest.mark.long
@pytest.mark.parametrize(("framework", "program"), [("torch", _TORCH), ("jax", _JAX)])
def test_sizes_of_the_paper(framework: str, program: str) -> None:
    if not _is_there(framework):
        pytest.skip(f"needs {framework}")
    names = [name for name in WORKLOADS if _can_run(name, framework)]
    command = (sys.executable, "-c", program, *names)
    done = subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True)
    found = dict(zip(names, json.loads(done.stdout.splitlines()[-1]), strict=True))
    assert found == {name: pytest.approx(MILLIONS[name] * 1e6, rel=2e-3) for name in names}


@pytest.mark.cases
@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_workload_runs(workload: str, framework: str, tmp_path: Path) -> None:
    if not _is_there(framework) or not _can_run(workload, framework):
        pytest.skip(f"needs {framework}, or transformers")
    command = (sys.executable, "program.py", workload, framework, "--steps", "2", "--output")
    subprocess.run((*command, tmp_path), cwd=FOLDER, check=True, capture_output=True)
    assert len(json.loads((tmp_path / "times.json").read_text())["steps_ns"]) == 2


def _can_run(workload: str, framework: str) -> bool:
    return framework == "jax" or workload not in OF_TRANSFORMERS or _is_there("transformers")


def _is_there(package: str) -> bool:
    return importlib.util.find_spec(package) is not None  # imports set variables of the environment
