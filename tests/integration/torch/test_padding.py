"""Padding among the indices of embeddings, counted in windows of a recording without shapes."""

from __future__ import annotations

import re
import time
from typing import Any, Final

import pytest

from deepcontext.analyzers import run_analyzers

torch = pytest.importorskip("torch")

NAMES: Final = ("index_count", "padding_count", "shared_padding_count")
LENGTH: Final = 64


def open_window() -> None:
    """Wait until a window may open, and let an operator open it."""
    time.sleep(0.02)
    torch.ones(4).neg_()


def counts(record: Any, *batches: Any) -> tuple[int, ...]:
    """Positions that were looked at, padding among them, and padding that each row has."""
    table = torch.nn.Embedding(100, 4)

    def work() -> None:
        open_window()
        for each in batches:
            table(each)

    metrics = record(work).profile.metrics
    for _ in range(4):  # a window closes by itself while a busy machine does other work
        if NAMES[0] in metrics and metrics[NAMES[0]].count.sum() == len(batches):
            break
        metrics = record(work).profile.metrics
    return tuple(int(metrics[name].total.sum()) if name in metrics else 0 for name in NAMES)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[5, 6, 7, 0, 0], [5, 0, 0, 0, 0], [1, 2, 3, 4, 0]], (15, 7, 3)),
        ([[0, 0, 6, 5], [0, 0, 0, 7], [0, 0, 8, 9]], (12, 7, 6)),
        ([[1, 2, 3, 4], [5, 6, 7, 8], [9, 8, 7, 6]], (12, 1, 0)),
        ([[3, 0, 0, 1], [4, 0, 0, 1], [5, 6, 7, 1]], (12, 3, 3)),
    ],
    ids=["behind", "in front", "none", "a mark at each end"],
)
def test_what_most_rows_end_or_begin_with_is_padding(
    record: Any, rows: list[list[int]], expected: tuple[int, ...], dtype: Any
) -> None:
    assert counts(record, torch.tensor(rows, dtype=dtype)) == expected


def test_rows_may_lie_anywhere_in_memory(record: Any) -> None:
    rows = torch.tensor([[5, 1], [6, 0], [0, 0], [0, 0]])
    assert counts(record, rows.T, rows.repeat(1, 3)[:, ::3].T) == (16, 10, 8)


def test_what_is_no_batch_of_sequences_is_not_counted(record: Any) -> None:
    zeros = torch.zeros(4, 4, dtype=torch.int64)
    others = torch.tensor([1, 2, 0, 0]), torch.tensor([[1, 0, 0]]), zeros, zeros[None], zeros[:0]
    assert counts(record, *others) == (0, 0, 0)


def test_rows_may_be_long_but_not_of_any_length(record: Any) -> None:
    rows = torch.arange(1, 10_001).remainder(97).add(1).repeat(20, 1)
    rows[:, 6000:] = 0
    assert counts(record, rows) == (80_000, 32_000, 32_000)
    assert counts(record, rows.reshape(2, -1)) == (0, 0, 0)


def test_a_part_of_the_rows_of_a_large_batch_is_looked_at(record: Any) -> None:
    rows = torch.arange(1, 91).repeat(4000, 1)
    rows[:, 60:] = 0
    looked, padded, shared = counts(record, rows)
    assert looked == 16384 // 90 * 90
    assert padded == shared == looked // 3


class Tagger(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(100, 32, padding_idx=0)
        self.layer = torch.nn.Linear(32, 64)

    def forward(self, indices: Any) -> Any:
        return self.layer(self.table(indices)).relu().sum()


def batch(lengths: list[int]) -> Any:
    made = torch.full((len(lengths), LENGTH), 0)
    for row, length in enumerate(lengths):
        made[row, :length] = torch.arange(1, length + 1)
    return made


def train(lengths: list[int]) -> None:
    model = Tagger()
    for _ in range(30):
        open_window()
        indices = batch(lengths)
        for _ in range(10):
            model(indices).backward()


@pytest.mark.parametrize(
    ("lengths", "title"),
    [
        (
            [8, 16, 4, 8] * 4,
            "86% of what Tagger gets at .*train.* is padding, made at .*batch.*, 75% beyond",
        ),
        ([64, 16, 8, 8] * 4, "62% of what Tagger gets at .*train.* is padding, up to the longest"),
        ([64, 64, 32, 48] * 4, ""),
    ],
    ids=["a fixed length", "the longest", "similar lengths"],
)
def test_models_that_compute_on_padding_are_found(
    record: Any, lengths: list[int], title: str
) -> None:
    found = run_analyzers(record(lambda: train(lengths)).profile, only=["model_calls"])
    assert len(found) == (title != "")
    for each in found:
        assert re.match(title, each.title), each.title
