"""Element types of operators' inputs, counted in windows of a recording without shapes."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")

KINDS = ("float", "float64", "float16", "bfloat16", "widened", "integer")


def counts(recording: Any, name: str) -> dict[str, int]:
    """Calls of an operator that a window met, by kind of inputs."""
    found = {}
    for kind in KINDS:
        rows = recording.profile.metrics.get(f"{kind}_input_count")
        pairs = zip(rows.node.tolist(), rows.count.tolist(), strict=True) if rows else ()
        if value := sum(count for node, count in pairs if recording.frame(node).name == name):
            found[kind] = value
    return found


def open_window() -> None:
    """Wait until the first window may open, and let an operator open it."""
    time.sleep(0.02)
    torch.ones(4).neg_()


def test_types_of_the_inputs_are_counted(record: Any) -> None:
    doubles, singles = torch.ones(4, 4, dtype=torch.float64), torch.ones(4, 4)
    integers = torch.ones(4, 4, dtype=torch.int64)

    def work() -> None:
        open_window()
        doubles.mm(doubles)
        doubles.mul(singles)
        singles.add(2.0)  # the number is a float64 tensor without dimensions
        singles.half().neg()
        singles.bfloat16().exp()
        integers.view(-1)
        integers.view(-1)

    recording = record(work)
    assert counts(recording, "aten::mm") == {"float": 1, "float64": 1}
    assert counts(recording, "aten::mul") == {"float": 1, "float64": 1, "widened": 1}
    assert counts(recording, "aten::add") == {"float": 1}
    assert counts(recording, "aten::neg") == {"float": 1, "float16": 1}
    assert counts(recording, "aten::exp") == {"float": 1, "bfloat16": 1}
    assert counts(recording, "aten::view") == {"integer": 2}


def targets(recording: Any) -> dict[str, list[int]]:
    names = ("loss_target_count", "ignored_target_count")
    rows = {name: recording.profile.metrics.get(name) for name in names}
    return {name: row.total.tolist() for name, row in rows.items() if row}


def test_ignored_targets_of_losses_are_counted(record: Any) -> None:
    scores, labels = torch.zeros(6, 3), torch.tensor([0, -7, 2, -7, -7, 1])
    strided = torch.stack([labels, torch.full_like(labels, -7)], 1)[:, 0]
    loss_of = torch.nn.functional.cross_entropy

    def work() -> None:
        open_window()
        for _ in range(2):
            loss_of(scores, strided, ignore_index=-7)

    assert targets(record(work)) == {"loss_target_count": [12], "ignored_target_count": [6]}


def test_a_part_of_many_targets_is_looked_at(record: Any) -> None:
    scores, labels = torch.zeros(40_000, 2), torch.ones(40_000, dtype=torch.int64)
    labels[30_000:] = -100

    def work() -> None:
        for _ in range(5):  # a window closes by itself while a busy machine does other work
            open_window()
            torch.nn.functional.cross_entropy(scores, labels)

    found = targets(record(work))
    looks = found["loss_target_count"][0]
    assert 4096 <= looks <= 5 * 8192
    assert found["ignored_target_count"][0] == pytest.approx(looks / 4, rel=0.01)


def test_other_targets_are_not_looked_at(record: Any) -> None:
    scores = torch.zeros(2, 3, 4, 4)

    def work() -> None:
        open_window()
        loss_of = torch.nn.functional.cross_entropy
        loss_of(scores, torch.zeros(2, 4, 4, dtype=torch.int64))  # of pictures
        loss_of(scores[0, :, 0].T, torch.ones(4, 3) / 3)  # shares of classes

    assert targets(record(work)) == {}


def test_backward_operators_are_counted(record: Any) -> None:
    weight = torch.ones(4, 4, dtype=torch.float64, requires_grad=True)

    def work() -> None:
        open_window()
        weight.mm(weight).sum().backward()

    recording = record(work)
    assert counts(recording, "MmBackward0") == {"float": 1, "float64": 1}


def test_names_with_shapes_have_the_types_instead(record: Any) -> None:
    recording = record(open_window, shapes=True)
    assert not [name for name in recording.profile.metrics if name.endswith("_input_count")]


def test_a_window_closes_and_another_opens(record: Any) -> None:
    data = torch.ones(4)

    def work() -> None:
        open_window()
        for _ in range(3000):
            data.neg()
        time.sleep(0.4)
        for _ in range(3000):
            data.exp()

    recording = record(work)
    assert 0 < counts(recording, "aten::neg")["float"] < 3000
    assert 0 < counts(recording, "aten::exp")["float"] < 3000


def test_no_window_opens_where_two_threads_run_operators(record: Any) -> None:
    # A change of PyTorch's list of observers takes its lock on each thread, which a fork may copy.
    data = torch.ones(4)

    def work() -> None:
        thread = threading.Thread(target=data.neg)
        thread.start()
        thread.join()
        data.neg()
        for _ in range(3):
            open_window()

    assert not counts(record(work), "aten::neg_")


def test_no_window_opens_beside_a_thread_that_runs_what_an_ended_one_ran(record: Any) -> None:
    """It takes over the recorder of the ended one, with its tree, where no node runs for the first time."""
    data = torch.ones(4)
    is_done, may_end = threading.Event(), threading.Event()

    def worker() -> None:
        data.neg()
        is_done.set()
        may_end.wait()

    def start(number: int) -> threading.Thread:
        is_done.clear()
        thread = threading.Thread(target=worker, name=f"worker {number}")
        thread.start()
        is_done.wait()
        return thread

    def work() -> None:
        may_end.set()
        start(1).join()
        may_end.clear()
        living = start(2)
        for _ in range(3):
            open_window()
        may_end.set()
        living.join()

    assert not counts(record(work), "aten::neg_")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_threads_that_work_on_parts_of_an_operator_end_no_windows(record: Any) -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    data = torch.randn(16, 4, 64, 32, requires_grad=True)

    def work() -> None:
        for _ in range(30):
            attention(data, data, data).sum().backward()
            open_window()
            torch.ones(4).neg()

    recording = record(work)
    on_thread = {recording.frame(each).name for each in recording.profile.tree.children(0)}
    assert "Thread" in on_thread, "this torch runs no operator on its worker threads"
    assert counts(recording, "aten::neg")["float"] >= 3


@pytest.mark.usefixtures("two_threads")
def test_forks_beside_threads_of_an_operator_harm_nobody(record: Any) -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    data = torch.randn(16, 4, 64, 32, requires_grad=True)

    def work() -> None:
        for _ in range(40):
            attention(data, data, data).sum().backward()
            child = os.fork()
            if child == 0:
                torch.ones(4).neg()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            time.sleep(0.01)

    assert counts(record(work), "aten::scaled_dot_product_attention")["float"] > 1


@pytest.mark.long
def test_forks_in_windows_harm_nobody(record: Any) -> None:
    data = torch.ones(4)

    def work() -> None:
        open_window()
        for _ in range(30):
            data.neg()
            child = os.fork()
            if child == 0:
                data.neg()  # closes the window that it inherited
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            time.sleep(0.02)

    assert counts(record(work), "aten::neg")["float"] > 1
