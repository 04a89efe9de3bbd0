"""Samples name the native function that a line of Python runs, as Python calls it.

Each program keeps one line busy for a time of its own clock, so that a slow machine takes more of the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.account import account
from deepcontext.ui.report import report_to_dict
from tests.profiled import profiled

if TYPE_CHECKING:
    from pathlib import Path

    from deepcontext.profiler.summaries.account import Place

pytestmark = pytest.mark.skipif(
    not _native.native_is_supported(), reason="native stacks cannot be walked on this processor"
)
BUSY = """
import time
def busy(work):
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        work()
"""
LINES = {
    "list.insert": "from_front = lambda: [values.insert(0, 1) for _ in range(100)]",
    "list.__contains__": "find = lambda: [-1 in values for _ in range(100)]",
    "sorted": "order = lambda: sorted(values, key=str)",
    "_json.Encoder.__call__": "pack = lambda: json.dumps(values)",
    "collections.deque.__getitem__": "middle = lambda: [queue[50_000] for _ in range(1000)]",
    "re.Pattern.sub": 'strip = lambda: re.sub(r"\\s+$", "", text)',
    "bytes.__getitem__": "cut = lambda: [content[1:] for _ in range(100)]",
    "numpy.random._generator.Generator.choice": "draw = lambda: numbers.choice(10_000, p=weights)",
    "zlib.compress": "press = lambda: zlib.compress(content, 9)",
    "numpy.concatenate": "join = lambda: np.concatenate([array, array])",
    # Its own frame takes 30 KiB of the stack.
    "numpy.c_einsum": 'score = lambda: np.einsum("bi,bij,ej->be", rows, tables, rows)',
    "torch.tensor": "make = lambda: torch.tensor(values)",
}
SET_UP = """
import collections, json, os, re, zlib
import numpy as np
import torch
values = list(range(50_000))
queue = collections.deque(range(100_000))
content = os.urandom(1 << 16) * 8
array = np.arange(2_000_000)
text = " " * 2000 + "end"
rows, tables = np.ones((32, 16)), np.ones((32, 16, 16))
numbers, weights = np.random.default_rng(0), np.full(10_000, 1e-4)
"""


def places(path: Path, program: str, *options: str) -> dict[str, Place]:
    """Run a program under `deepcontext profile`; return the time of each line by its text."""
    found = account(profiled(path, program, "-q", "--cpu-rate", "200", *options).profile)
    text = program.splitlines()
    return {text[place.frame.line - 1]: place for place in found.lines if place.frame}


@pytest.mark.long
def test_a_line_names_the_function_that_it_runs(tmp_path: Path) -> None:
    work = "\n".join(
        f"{line}\nbusy({line.partition(' =')[0]})\nvalues = values[:50_000]"
        for line in LINES.values()
    )
    found = places(tmp_path, f"{BUSY}{SET_UP}{work}\n")
    names = {name: found[line].callees[0].name for name, line in LINES.items()}
    assert names == {name: name for name in LINES}
    shown = report_to_dict(Profile.load(tmp_path / "out.dcprof"), limit=1, metric="host_time_ns")
    (row,) = json.loads(json.dumps(shown))["account"]["lines"]["rows"]
    assert row["callees"][0].keys() == {"name", "time_ns"}


def test_python_itself_is_no_function(tmp_path: Path) -> None:
    line = "    if number and number is not None: count = number"
    program = f"{BUSY}def loop():\n  count = 0\n  for number in range(1000):\n{line}\nbusy(loop)\n"
    place = places(tmp_path, program)[line]
    assert sum(each.time_ns for each in place.callees) < place.time_ns / 4


def test_a_function_that_serves_many_names_has_none_of_them(tmp_path: Path) -> None:
    # All functions of pybind11 begin in one native function, which is left out.
    line = "ask = lambda: [torch._C._get_cpu_capability() for _ in range(1000)]"
    callees = places(tmp_path, f"{BUSY}import torch\n{line}\nbusy(ask)\n")[line].callees
    assert callees
    assert not {"dispatcher", "cpu_capability"} & {each.name.rpartition(":")[2] for each in callees}


def test_no_class_made_in_python_names_what_all_such_classes_share(tmp_path: Path) -> None:
    # A class with slots alone: its __init__ is called by a native function of the interpreter.
    point = "class Point:\n  __slots__ = ()\n  def __init__(self, x): pass\n"
    line = "make = lambda: [Point(number) for number in range(1000)]"
    callees = places(tmp_path, f"{BUSY}{point}{line}\nbusy(make)\n")[line].callees
    assert not [each.name for each in callees if each.name[0].isupper()]


def test_a_function_called_through_python_code_keeps_its_own_line(tmp_path: Path) -> None:
    # The key function is Python below native code: its own native function stands below itself.
    inner = "  return sum(range(20_000)) + value"
    outer = "order = lambda: sorted(range(5), key=slow)"
    program = f"{BUSY}def slow(value):\n{inner}\n{outer}\nbusy(order)\n"
    found = places(tmp_path, program)
    assert found[inner].callees[0].name == "sum"
    assert found[inner].time_ns > found[outer].time_ns if outer in found else True
