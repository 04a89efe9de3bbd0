"""What an operator works for: forward, backward, recompute, optimizer, data loading."""

from __future__ import annotations

from typing import Any

import pytest

from deepcontext.profiler.format.frame import FrameKind, Phase

torch = pytest.importorskip("torch")
nn = torch.nn


def phases_of(recording: Any, name: str) -> set[Phase]:
    return {recording.phase(node) for node in recording.operators(name)}


def train_step(optimizer: Any, parameters: Any) -> None:
    loss = sum(parameter.square().sum() for parameter in parameters)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize(
    ("make", "operators"),
    [
        pytest.param(
            lambda p: torch.optim.SGD(p, lr=0.1, foreach=False), {"aten::add_"}, id="SGD loop"
        ),
        pytest.param(
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
            {"aten::_foreach_add_"},
            id="SGD foreach",
        ),
        pytest.param(
            lambda p: torch.optim.SGD(p, lr=0.1, fused=True), {"aten::_fused_sgd_"}, id="SGD fused"
        ),
        pytest.param(
            lambda p: torch.optim.Adam(p, foreach=False), {"aten::addcdiv_"}, id="Adam loop"
        ),
        pytest.param(
            lambda p: torch.optim.AdamW(p, fused=True), {"aten::_fused_adamw_"}, id="AdamW fused"
        ),
    ],
)
def test_optimizer_steps(record: Any, make: Any, operators: set[str]) -> None:
    parameters = [torch.ones(4, requires_grad=True), torch.ones(3, requires_grad=True)]
    optimizer = make(parameters)
    recording = record(train_step, optimizer, parameters)
    seen = {recording.frame(node).name for node in recording.operators(phase=Phase.OPTIMIZER)}
    assert operators <= seen
    name = type(optimizer).__name__
    (path,) = recording.paths(f"Optimizer.step#{name}.step")
    assert path == ["train_step: optimizer.step()", f"<Optimizer.step#{name}.step>"]
    for operator in operators:
        assert phases_of(recording, operator) == {Phase.OPTIMIZER}
        for path in recording.paths(operator):
            assert path[:2] == ["train_step: optimizer.step()", f"<Optimizer.step#{name}.step>"]
            assert path[2].endswith(".step")
    assert recording.calls(f"Optimizer.zero_grad#{name}.zero_grad") == 1
    assert phases_of(recording, "PowBackward0") == {Phase.BACKWARD}
    assert phases_of(recording, "aten::square") == {Phase.FORWARD}


def train_by_closure(optimizer: Any, model: Any, value: Any) -> None:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(value), value)
        loss.backward()
        return loss

    optimizer.step(closure)


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, torch.optim.AdamW])
def test_a_closure_in_an_optimizer_step_is_no_part_of_the_optimizer(record: Any, kind: Any) -> None:
    """LBFGS needs closures; Lightning gives one to every optimizer."""
    model = Block()
    recording = record(train_by_closure, kind(model.parameters()), model, torch.ones(2, 4))
    for name in ("aten::tanh", "aten::addmm", "aten::mse_loss"):
        assert phases_of(recording, name) == {Phase.FORWARD}
    assert phases_of(recording, "TanhBackward0") == {Phase.BACKWARD}
    optimizer = {recording.frame(node).name for node in recording.operators(phase=Phase.OPTIMIZER)}
    assert optimizer & {"aten::_foreach_add_", "aten::add_", "aten::addcdiv_"}
    assert not optimizer & {"aten::tanh", "aten::linear", "aten::mse_loss", "aten::mm"}


class Numbers(torch.utils.data.Dataset):  # type: ignore[name-defined, misc]
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return torch.full((3,), float(index)).neg()


def load(loader: Any) -> None:
    for batch in loader:
        batch.sum()


def test_data_loading_in_the_main_process(record: Any) -> None:
    recording = record(load, torch.utils.data.DataLoader(Numbers(), batch_size=4))
    scope = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    (neg,) = recording.paths("aten::neg")
    assert neg[0] == "load: for batch in loader:"
    assert neg[1:3] == ["_BaseDataLoaderIter.__next__", f"<{scope}>"]
    assert neg[-2:] == [
        "Numbers.__getitem__: return torch.full((3,), float(index)).neg()",
        "aten::neg",
    ]
    for name in ("aten::neg", "aten::stack"):
        assert phases_of(recording, name) == {Phase.DATA_LOADING}
    assert phases_of(recording, "aten::sum") == {Phase.FORWARD}
    assert recording.calls(scope) == 3  # two batches and the end
    assert recording.calls("aten::neg") == 8


LOADER = """
    import torch, deepcontext

    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return torch.full((3,), float(index)).neg()

    if __name__ == "__main__":
        import sys
        method, workers = sys.argv[1], int(sys.argv[2])
        deepcontext.start("out.dcprof")
        loader = torch.utils.data.DataLoader(
            Numbers(), batch_size=2, num_workers=workers, multiprocessing_context=method
        )
        print([batch.sum().item() for batch in loader])
        deepcontext.stop()
"""


@pytest.mark.long
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("spawn", 1)])
def test_data_loading_in_worker_processes(script: Any, method: str, workers: int) -> None:
    """Workers neither crash nor write into the file; waiting for them is data loading."""
    assert script.run(LOADER, method, str(workers)) == "[-3.0, -15.0, -27.0, -39.0]\n"
    recording = script.recording()
    (scope,) = {
        recording.frame(node).name
        for node in recording.nodes(FrameKind.SCOPE)
        if "DataLoader" in recording.frame(node).name
    }
    assert scope == "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert recording.calls(scope) == 5
    assert {recording.phase(node) for node in recording.nodes(name=scope)} == {Phase.DATA_LOADING}
    assert recording.calls("aten::neg") == 0
    assert recording.counters["forked_children"] == (2 if method == "fork" else 0)


class Block(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, value: Any) -> Any:
        return torch.tanh(self.linear(value))


def checkpointed(block: Any, use_reentrant: bool) -> None:  # noqa: FBT001
    value = torch.ones(2, 4, requires_grad=True)
    result = torch.utils.checkpoint.checkpoint(block, value, use_reentrant=use_reentrant)
    result.sum().backward()


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_runs_forward_again(record: Any, use_reentrant: bool) -> None:  # noqa: FBT001
    """Reentrant checkpoints differentiate the second forward, the others the first."""
    recording = record(checkpointed, Block(), use_reentrant)
    assert recording.counters["backward_links_missed"] == 0
    assert recording.calls("aten::tanh") == 2
    assert Phase.RECOMPUTE in phases_of(recording, "aten::tanh")
    assert len(recording.operators("aten::tanh")) == 2
    assert phases_of(recording, "TanhBackward0") == {Phase.BACKWARD}
    (again,) = recording.operators("aten::tanh", Phase.RECOMPUTE)
    path = recording.path(again)
    assert path[-2:] == ["Block.forward: return torch.tanh(self.linear(value))", "aten::tanh"]
    assert "Block" in path
    (backward,) = recording.operators("TanhBackward0")
    above = recording.path(backward)
    is_below_second = any(
        recording.phase(at) == Phase.RECOMPUTE for at in recording.ancestors(backward)
    )
    assert is_below_second == use_reentrant
    assert above[-3:-1] == [
        "Block.forward: return torch.tanh(self.linear(value))",
        "aten::tanh",
    ]
