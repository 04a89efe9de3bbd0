"""Inputs of costly operators, compared with those of earlier calls in windows of a recording."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine take longer than a window."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def open_window() -> None:
    """Wait until the first window may open, and let an operator open it."""
    time.sleep(0.02)
    torch.ones(4).neg_()


def count_of(recording: Any, metric: str, name: str) -> int:
    """Events of a metric at an operator."""
    rows = recording.profile.metrics.get(metric)
    pairs = zip(rows.node.tolist(), rows.count.tolist(), strict=True) if rows else ()
    return sum(count for node, count in pairs if recording.frame(node).name == name)


def recorded(record: Any, work: Any, name: str, calls: int) -> Any:
    """Record until one window has met all calls of an operator: on a busy machine it ends before."""
    for _ in range(40):
        recording = record(work)
        if count_of(recording, "float_input_count", name) == calls:
            return recording
    pytest.fail("no window met all calls")


def compared(recording: Any, name: str = "aten::mm") -> tuple[int, int]:
    """Calls of an operator that were compared, and those with the inputs of an earlier call."""
    return (
        count_of(recording, "comparison_window_count", name),
        count_of(recording, "repeated_input_count", name),
    )


def multiply(record: Any, inputs: list[tuple[Any, Any]]) -> tuple[int, int]:
    """Multiply pairs of matrices at one line; return `compared`."""

    def work() -> None:
        open_window()
        for left, right in inputs:
            left.mm(right)

    return compared(recorded(record, work, "aten::mm", len(inputs)))


def test_calls_with_the_same_inputs_are_counted(record: Any) -> None:
    left, right = torch.randn(20, 30), torch.randn(30, 40)
    assert multiply(record, [(left, right)] * 5) == (4, 4)


def test_equal_values_elsewhere_in_memory_are_the_same(record: Any) -> None:
    left, right = torch.randn(20, 30), torch.randn(30, 40)
    turned = left.T.contiguous().T
    assert multiply(record, [(left, right), (left.clone(), right), (turned, right)]) == (2, 2)


def test_other_values_and_other_sizes_are_not_the_same(record: Any) -> None:
    left, right = torch.randn(20, 30), torch.randn(30, 40)
    others = [(left + 1, right), (left, right * 2), (left[:10], right), (left, right[:, :20])]
    assert multiply(record, [(left, right), *others]) == (4, 0)


def test_a_loop_in_a_part_that_repeats_its_work_is_recognised(record: Any) -> None:
    steps = [(torch.randn(20, 30), torch.randn(30, 4)) for _ in range(6)]
    assert multiply(record, steps * 3) == (17, 12)


@pytest.mark.parametrize(
    "values",
    [torch.zeros(40, 40), torch.eye(40), torch.nn.functional.one_hot(torch.arange(40) % 3).float()],
    ids=["zeros", "diagonal", "one-hot"],
)
def test_values_that_hardly_differ_say_nothing(record: Any, values: Any) -> None:
    right = torch.randn(values.shape[1], 40)
    assert multiply(record, [(values, right)] * 3) == (0, 0)


def test_few_elements_are_known_as_a_whole(record: Any) -> None:
    assert multiply(record, [(torch.zeros(2, 3), torch.zeros(3, 2))] * 3) == (2, 2)


def test_a_tensor_without_its_memory_is_not_read(record: Any) -> None:
    """Sharded programs empty the storages of parameters; a wrong size ends the call before it reads."""
    emptied = torch.randn(64, 64)[8:]
    emptied.untyped_storage().resize_(0)

    def work() -> None:
        open_window()
        for _ in range(3):
            with pytest.raises(RuntimeError, match="cannot be multiplied"):
                emptied.mm(torch.randn(3, 4))

    assert compared(recorded(record, work, "aten::mm", 3)) == (0, 0)


@pytest.mark.parametrize("kind", ["sparse", "meta", "mapped"])
def test_tensors_that_are_no_plain_memory_are_not_read(record: Any, kind: str) -> None:
    matrix, rows = torch.randn(8, 8), torch.randn(2, 8, 8)
    multiply, operands = torch.mm, (matrix, matrix)
    if kind == "sparse":
        operands = (matrix.to_sparse(), matrix)
    elif kind == "meta":
        operands = (matrix.to("meta"), matrix.to("meta"))
    else:
        multiply, operands = torch.vmap(torch.mm), (matrix.expand(2, 8, 8), matrix.expand(2, 8, 8))

    def work() -> None:
        open_window()
        for _ in range(2):
            torch.baddbmm(rows, rows, rows)
            multiply(*operands)

    multiply(*operands)  # the first call of some takes longer than a window
    recording = recorded(record, work, "aten::baddbmm", 2)
    assert compared(recording, "aten::baddbmm") == (1, 1)
    assert compared(recording) == (0, 0)


def test_a_tensor_that_shares_its_memory_until_it_is_written_is_not_copied(record: Any) -> None:
    matrix = torch.randn(8, 8)
    lazy = torch._lazy_clone(matrix)

    def work() -> None:
        open_window()
        for _ in range(3):
            lazy.mm(matrix)

    assert compared(recorded(record, work, "aten::mm", 3)) == (2, 2)
    assert torch._C._is_cow_tensor(lazy)


def test_operators_of_models_are_compared(record: Any) -> None:
    linear, convolution = torch.nn.Linear(30, 20), torch.nn.Conv1d(4, 4, 5)
    rows, signals = torch.randn(10, 30), torch.randn(2, 4, 50)
    heads = torch.randn(1, 2, 16, 8)

    def call() -> None:
        linear(rows)
        convolution(signals)
        torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)

    def work() -> None:
        open_window()
        for _ in range(3):
            call()

    recording = recorded(record, work, "aten::scaled_dot_product_attention", 3)
    for name in ("linear", "convolution", "scaled_dot_product_attention"):
        assert compared(recording, f"aten::{name}") == (2, 2), name
