"""The workloads of benchmarks/evaluation: a step of each runs, and the paper's sizes fit together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "evaluation"
WORKLOADS = sorted(
    path.stem for path in FOLDER.glob("*.py") if "\nSIZES = " in path.read_text(encoding="utf-8")
)
# Tensors without memory: a step of 8 billion parameters computes shapes only.
_SHAPES = """
import importlib, json, sys
module = importlib.import_module(sys.argv[1])
size = module.SIZES["paper"]
if sys.argv[2] == "torch":
    import torch, training
    made = []
    training.trained = lambda model, loss, rate=0: made.append(model) or loss
    with torch.device("meta"):
        step = module.torch_step(size)
        if made and sys.argv[1] != "gemma":  # transformers reads values
            step()
    models = made or [step.__closure__[0].cell_contents]
    print(sum(p.numel() for p in models[0].parameters()))
else:
    import jax, layers
    from math import prod
    found = []
    def shapes(model, *batch, dtype=None, rate=0):
        found.append(layers.shapes(model, *batch))
        raise SystemExit(print(sum(prod(shape) for shape, _ in found[0].values())))
    layers.trained = layers.initial = shapes
    module.jax_step(size)
"""


def test_there_are_ten_workloads() -> None:
    assert len(WORKLOADS) == 10


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_workload_runs(workload: str, framework: str, tmp_path: Path) -> None:
    _needs(workload, framework)
    command = (sys.executable, "program.py", workload, framework, "--steps", "2", "--output")
    subprocess.run((*command, tmp_path), cwd=FOLDER, check=True, capture_output=True)
    assert len(json.loads((tmp_path / "times.json").read_text())["steps_ns"]) == 2


# Parameters in millions, as published.
@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize(
    ("workload", "millions"),
    [
        ("unet", 7.76),
        ("resnet", 25.6),
        ("vit", 22.05),
        ("llama", 8030),
        ("gemma", 2506),
        ("nanogpt", 124.4),
    ],
)
def test_sizes_of_the_paper(workload: str, millions: float, framework: str) -> None:
    _needs(workload, framework)
    command = (sys.executable, "-c", _SHAPES, workload, framework)
    done = subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True)
    assert float(done.stdout) / 1e6 == pytest.approx(millions, rel=0.02)


def _needs(workload: str, framework: str) -> None:
    pytest.importorskip(framework)
    if framework == "torch" and workload in {"llama", "gemma"}:
        pytest.importorskip("transformers")
