"""Which operators built a graph for a backward pass."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")


def builders(recording: Any) -> set[str]:
    """Names of the operators that built a graph, by the line that called them."""
    rows = recording.profile.metrics.get("built_graph_count")
    nodes = rows.node.tolist() if rows else []
    return {f"{recording.path(node)[-2]} > {recording.frame(node).name}" for node in nodes}


def workload() -> None:
    weight, data = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)
    data.mm(data)
    weight.mm(data)
    torch.nn.functional.linear(data, weight)
    with torch.no_grad():
        weight.mul(data)
    with torch.inference_mode():
        weight.div(2.0)
    weight.detach().neg()
    (weight * 2.0).sum().backward()


def test_operators_that_build_a_graph(record: Any) -> None:
    assert builders(record(workload)) == {
        "workload: weight.mm(data) > aten::mm",
        "workload: torch.nn.functional.linear(data, weight) > aten::linear",
        "workload: (weight * 2.0).sum().backward() > aten::mul",
        "workload: (weight * 2.0).sum().backward() > aten::sum",
    }


def test_a_path_with_and_without_gradients_built_a_graph(record: Any) -> None:
    weight = torch.ones(3, requires_grad=True)

    def twice() -> None:
        for is_training in (False, True):
            with torch.set_grad_enabled(is_training):
                weight.exp()

    recording = record(twice)
    assert builders(recording) == {"twice: weight.exp() > aten::exp"}
    assert recording.calls("aten::exp") == 2


def test_a_backward_builds_no_graph_unless_it_is_differentiated(record: Any) -> None:
    weight = torch.ones(3, requires_grad=True)

    def second_order() -> None:
        (first,) = torch.autograd.grad((weight**3).sum(), weight, create_graph=True)
        first.sum().backward()

    names = {each.rpartition(" > ")[2] for each in builders(record(second_order))}
    assert not {name for name in names if name.endswith("Backward0")}
