"""Hugging Face GPT-2 with random weights: training eager and compiled, and generation."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.ecosystem, pytest.mark.timeout(1800)]

pytest.importorskip("torch")
pytest.importorskip("transformers")

MODEL = """\
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64)
model = GPT2LMHeadModel(config)
"""
TRAINING = (
    MODEL
    + """
step_function = {step_function}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model.train()
for step in range({steps}):
    tokens = torch.randint(0, 100, (2, 16))
    loss = step_function(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, f"{{loss.item():.4f}}")
"""
)
GENERATION = (
    MODEL
    + """
model.eval()
tokens = torch.randint(0, 100, (1, 5))
with torch.no_grad():
    print(model.generate(tokens, max_new_tokens=8, do_sample=False, pad_token_id=0).tolist())
"""
)
_LAYER = "GPT2Block 'transformer.h.1'"


def names_above(profile: Any, node: int) -> list[str]:
    return [frame.name for frame in profile.path(node)]


def test_eager_training(program: Any) -> None:
    steps = 4
    _, profile = program.profile(TRAINING.format(step_function="model", steps=steps))
    assert profile.trust.counters["backward_links_missed"] == 0
    linear = profile.query().kind("operator").name("AddmmBackward0").module("transformer.h.1.*")
    assert linear.phase("backward").total("call_duration_ns") > 0
    for node in linear.nodes():
        above = names_above(profile, int(node))
        assert above.index("GPT2LMHeadModel") < above.index(_LAYER)
        assert any(name.startswith("Conv1D 'transformer.h.1.") for name in above)
        assert profile.path(int(node))[2].file.endswith("program.py")
    optimizer = profile.query().phase("optimizer").under("Optimizer.step#AdamW.step")
    assert optimizer.count() > 0
    few = profile.query().kind("operator").count()  # sampled paths come with time, up to a bound
    _, longer = program.profile(TRAINING.format(step_function="model", steps=4 * steps))
    assert longer.query().kind("operator").count() <= 1.02 * few


def test_generation(program: Any) -> None:
    _, profile = program.profile(GENERATION)
    assert profile.query().kind("operator").under("*generate*").module("lm_head").count() > 0
    assert profile.query().phase("backward").count() == 0


def test_compiled_training(program: Any) -> None:
    """Compiling may print the same loss to four digits only."""
    source = TRAINING.format(step_function="torch.compile(model)", steps=3)
    _, profile = program.profile(source)
    assert profile.trust.counters["backward_links_missed"] == 0
    regions = profile.query().kind("operator").name("Torch-Compiled Region*")
    assert regions.count() > 0
    backward = profile.query().kind("operator").name("CompiledFunctionBackward")
    assert backward.under("Torch-Compiled Region*").count() == backward.count() > 0
    # Samples of importing and compiling are as many nodes as there were places.
    assert profile.query().kind("operator").count() < 1000
