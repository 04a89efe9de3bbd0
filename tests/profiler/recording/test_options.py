"""Values of options: what is refused, in which words, and that nothing was started then."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import deepcontext
from deepcontext import _native, errors
from deepcontext.profiler.format.counter_names import COUNTER_NAMES
from deepcontext.profiler.recording import options as option_values

FLAGS = ("shapes", "jax_exact", "stalls", "native", "gpu_calls", "memory", "force")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("snapshot_interval", -1, "a number from 0 to 1,000,000 (seconds; 0 to write at the"),
        ("snapshot_interval", math.inf, "found inf"),
        ("snapshot_interval", 10**400, "found 1000"),
        ("node_limit", 0, "a whole number from 1 to 4,194,304 (nodes a thread), found 0"),
        ("node_limit", -5, "found -5"),
        ("node_limit", 2.5, "found 2.5"),
        ("node_limit", 2**32, "found 4294967296"),
        ("node_limit", True, "found True"),
        ("cpu_rate", 1001, "a number from 0 to 1,000 (samples a second; 0 for none), found 1001"),
        ("cpu_rate", math.nan, "found nan"),
        ("cpu_rate", "100", "found '100'"),
        ("cpu_rate", None, "found None"),
        ("counters", "cycle", "no counter 'cycle'; known are cycles, "),
        ("counters", "cycles,,page-faults", "no counter ''"),
        ("counters", ["cycles", 3], "no counter 3"),
        ("counters", 3, "expected names of counters, found 3"),
        ("counters", b"cycles", "found b'cycles'"),
        *((flag, "no", "expected True or False, found 'no'") for flag in FLAGS),
        ("shapes", None, "found None"),
        ("shapes", 2, "found 2"),
    ],
)
def test_a_value_out_of_range_is_refused_before_anything_starts(
    option: str, value: Any, expected: str
) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(errors.UserError) as caught:
        deepcontext.start(**options)
    assert str(caught.value).startswith(f"option {option}: ")
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 250
    assert not _native.is_recording()


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("cycles", ("cycles",)),
        ("cycles, page-faults,cycles", ("cycles", "page-faults")),
        ("", ()),
        ((), ()),
        (["page-faults"], ("page-faults",)),
        (iter(COUNTER_NAMES), COUNTER_NAMES),
    ],
)
def test_counters_may_be_named_in_one_text(value: Any, names: tuple[str, ...]) -> None:
    assert option_values.counters("counters", value) == tuple(names)


@pytest.mark.parametrize("value", [np.float64(50), np.int64(50), 50, 50.0])
def test_numbers_of_any_kind_are_numbers(value: Any) -> None:
    assert option_values.number("cpu_rate", value, option_values.CPU_RATE) == 50.0
    assert option_values.whole_number("node_limit", value, option_values.NODE_LIMIT) == 50


def test_the_least_and_the_most_of_every_range_are_accepted() -> None:
    for node_limit, cpu_rate in ((1, 0), (4_194_304, 1000)):
        with deepcontext.profile(node_limit=node_limit, cpu_rate=cpu_rate):
            pass
