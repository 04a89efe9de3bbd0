"""NumPy arrays that are copied in several calls, and arrays made of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.metric_values import exclusive_or_zeros

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from tests.integration.jax.conftest import Record, Recording

SIZE = 600_000  # numbers of 4 bytes: more than 1 MiB


@jax.jit
def summed(table: jax.Array) -> jax.Array:
    return table.sum()


def _total(recording: Recording, metric: str) -> int:
    return int(exclusive_or_zeros(recording.profile, metric).sum())


def test_bytes_of_an_array_that_comes_again(record: Record) -> None:
    table = np.ones(SIZE, np.float32)

    def work() -> None:
        for _ in range(6):
            summed(table).block_until_ready()

    recording = record(work)
    assert _total(recording, "transfer_bytes") == 6 * table.nbytes
    assert _total(recording, "repeated_transfer_bytes") == 5 * table.nbytes


def test_new_contents_and_small_arrays_do_not_come_again(record: Record) -> None:
    random = np.random.default_rng(0)
    buffer, small = np.empty(SIZE, np.float32), np.ones(100, np.float32)

    def work() -> None:
        for _ in range(6):
            random.random(out=buffer, dtype=np.float32)
            summed(buffer).block_until_ready()  # the same array with other contents
            summed(buffer + 1).block_until_ready()  # perhaps another array at the same address
            summed(small).block_until_ready()

    assert _total(record(work), "repeated_transfer_bytes") == 0


def test_arrays_are_made_below_a_frame_of_their_own(record: Record) -> None:
    def work() -> None:
        for _ in range(5):
            jnp.array([[1, 2, 3], [4, 5, 6]])

    recording = record(work)
    (making,) = recording.nodes(FrameKind.MARKER, "jax: make an array")
    inside = slice(making, int(recording.profile.tree.subtree_end[making]))
    launched = exclusive_or_zeros(recording.profile, "program_launch_count")[inside].sum()
    copied = exclusive_or_zeros(recording.profile, "transfer_bytes")[inside].sum()
    assert launched == 5
    assert copied == 5 * 6 * 4


def test_arrays_that_numpy_reads_in_place_have_their_bytes(record: Record) -> None:
    made = jax.block_until_ready(jnp.ones((300, 100)))

    def work() -> None:
        np.asarray(made).sum()

    assert _total(record(work), "read_bytes") == made.nbytes
