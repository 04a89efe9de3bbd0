"""Programs that use PyTorch behave the same, and the profile holds their operators."""

from __future__ import annotations

import re
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext import Profile

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("torch")

TRAINING = """\
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
class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 16
    def __getitem__(self, index): return torch.full((3,), float(index)) * 2
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Numbers(), batch_size=4, num_workers={count}, multiprocessing_context={method!r}
    )
    for epoch in range({count}):
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
import threading
def work(x): print((torch.ones(4) * x).sum().item())
for x in range(3):
    thread = threading.Thread(target=work, args=(x,)); thread.start(); thread.join()
"""


# One process for what needs none of its own: most of its time is the import.
TOGETHER = "import torch\n" + TRAINING + THREADS + LOADER.format(method="fork", count=2)
SPAWNED = "import torch\n" + LOADER.format(method="spawn", count=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "source", "operators"),
    [
        pytest.param(
            0,
            TOGETHER,
            {"training": "AddmmBackward0", "threads": "aten::mul", "loader": "aten::sum"},
            id="training, threads, forked data loader",
        ),
        pytest.param(0, SPAWNED, {"loader": "aten::sum"}, id="spawned data loader"),
        pytest.param(3, INSIDE, {"inside": "aten::add"}, id="import inside a function"),
    ],
)
def test_program_with_torch(
    same_as_python: Any, status: int, source: str, operators: dict[str, str]
) -> None:
    profile = same_as_python(source, status=status, normalize=without_tracker_warnings)
    recorded = profile.query().kind("operator")
    assert [part for part, name in operators.items() if not recorded.name(name).count()] == []


def without_tracker_warnings(text: str) -> str:
    """Leave out what multiprocessing says, in some runs of plain Python, of spawned workers."""
    return re.sub(r".*/resource_tracker\.py:\d+: UserWarning: .*\n(  .*\n)?", "", text)


@pytest.mark.long
def test_training_killed_by_sigterm_keeps_its_operators(
    same_as_python: Any,
) -> None:
    def has_operators(path: Path) -> bool:
        recorded = Profile.load(path).query().kind("operator")
        return bool(recorded.name("AddmmBackward0").count())

    def end(process: Any) -> None:
        # The first snapshot may be older than the first operator.
        path = same_as_python.profile_path
        while path.exists() and not has_operators(path):
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)

    source = "import time, torch\n" + TRAINING.replace("print(step, repr(loss.item()))", "pass")
    loop = "print('ready', flush=True)\nwhile True:\n    model(x).sum().backward()\n"
    profile = same_as_python(
        f"{source}x = torch.randn(32, 8)\n{loop}    time.sleep(0.01)\n",
        status=-signal.SIGTERM,
        action=end,
    )
    assert profile.run.exit_reason == "snapshot"
    assert has_operators(same_as_python.profile_path)
