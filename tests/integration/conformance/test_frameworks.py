"""Programs that use PyTorch behave the same, and the profile holds their operators."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("torch")

TRAINING = """\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = model(torch.randn(32, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()))
"""
LOADER = """\
import torch
class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 16
    def __getitem__(self, index): return torch.full((3,), float(index)) * 2
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Numbers(), batch_size=4, num_workers=2, multiprocessing_context={method!r}
    )
    for epoch in range(2):
        print([batch.sum().item() for batch in loader])
"""
INSIDE = """\
def work():
    import torch
    return torch.ones(3).add(1).sum().item()
print(work())
raise SystemExit(3)
"""
THREADS = """\
import threading, torch
def work(x): print((torch.ones(4) * x).sum().item())
for x in range(3):
    thread = threading.Thread(target=work, args=(x,)); thread.start(); thread.join()
"""


@pytest.mark.parametrize(
    ("status", "source", "operator"),
    [
        pytest.param(0, TRAINING, "AddmmBackward0", id="training"),
        pytest.param(0, LOADER.format(method="fork"), "aten::sum", id="forked data loader"),
        pytest.param(0, LOADER.format(method="spawn"), "aten::sum", id="spawned data loader"),
        pytest.param(3, INSIDE, "aten::add", id="import inside a function"),
        pytest.param(0, THREADS, "aten::mul", id="threads"),
    ],
)
def test_program_with_torch(same_as_python: Any, status: int, source: str, operator: str) -> None:
    profile = same_as_python(source, status=status, normalize=without_tracker_warnings)
    assert profile.query().kind("operator").name(operator).count() > 0


def without_tracker_warnings(text: str) -> str:
    """Leave out what multiprocessing says, in some runs of plain Python, of spawned workers."""
    return re.sub(r".*/resource_tracker\.py:\d+: UserWarning: .*\n(  .*\n)?", "", text)


def test_training_killed_by_sigterm_keeps_its_operators(
    same_as_python: Any,
) -> None:
    import signal

    # Young programs have snapshots often: one by twice the age at which the loop begins.
    loop = (
        "end = time.monotonic() + 3 + 1.5 * (time.monotonic() - began)\n"
        "while True:\n    model(torch.randn(32, 8)).sum().backward()\n"
        "    if time.monotonic() > end:\n"
        "        print('ready', flush=True)\n        end += 60\n"
    )
    source = "import time\nbegan = time.monotonic()\n" + TRAINING + loop
    profile = same_as_python(
        source.replace("print(step, repr(loss.item()))", "pass"),
        status=-signal.SIGTERM,
        action=lambda process: process.send_signal(signal.SIGTERM),
    )
    assert profile.run.exit_reason == "snapshot"
    assert profile.query().kind("operator").name("AddmmBackward0").count() > 0
