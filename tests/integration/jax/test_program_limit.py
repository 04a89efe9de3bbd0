"""More programs that nobody saw compiled than the profiler keeps apart."""

from __future__ import annotations

import string
import sys
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
import xspace  # found through the line above

if TYPE_CHECKING:
    from tests.integration.jax.conftest import Record

_MOST = 1000  # kMostPlaceholders, native/jax/program_table.cpp


def _add(module: str, program: int, operation: str, runs: int = 1) -> None:
    second_ps = 10**12
    executed = [
        xspace.Executed(
            module, program, program * 10 + run, operation, (1 + 2 * run) * second_ps, second_ps
        )
        for run in range(runs)
    ]
    _native.jax_open_window()
    _native.jax_add_window(_native.jax_close_window(), xspace.window(executed))


def test_programs_past_the_limit_are_credited_to_no_other_program(record: Record) -> None:
    @jax.jit
    def known(x: jax.Array) -> jax.Array:
        return x * 2 + 1

    def work() -> None:
        names = product(string.ascii_lowercase, repeat=3)
        for number, letters in enumerate(islice(names, _MOST)):
            _add("jit_" + "".join(letters), 10**6 + number, "fusion.1")
        known(jnp.ones(4)).block_until_ready()  # added last
        for number in range(8):  # they have an operation of the name of one of the known program
            _add(
                f"jit_past{string.ascii_lowercase[number]}",
                10**7 + number,
                _operation("jit_known"),
                runs=2,
            )

    recording = record(work)
    assert recording.launches("known") == 1
    assert recording.device_ns("known") < 1_000_000_000
    assert recording.detail("unknown_operations") == _MOST + 16
    assert recording.detail("untimed_operations") == 16
    assert (
        "16 operations belong to programs whose compilation was not seen, beyond the first 1,000 such "
        "programs: counted, not timed"
    ) in recording.collector.reason


def _operation(module: str) -> str:
    number = 0
    while (program := _native.jax_program(number)) is not None:
        if program["module"] == module:
            return str(program["operations"][0]["name"])
        number += 1
    raise AssertionError(module)
