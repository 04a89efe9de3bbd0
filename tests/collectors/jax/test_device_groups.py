"""Which processes exchange data in a collective: in all forms in which HLO writes groups of devices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepcontext import _native

pytest.importorskip("jax")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
import hlo as fake_hlo  # found through the line above
from hlo import field, numbers

# For each kind of program and mesh: the groups that XLA prints, worked out by NumPy, and those read.
EXCHANGES = """
import itertools, os, re
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from deepcontext import _native

def reference(text):
    if lists := re.fullmatch(r"\\{(\\{[\\d,{}]*\\})?\\}", text):
        groups = re.findall(r"\\{([\\d,]+)\\}", text)
        return "lists", [list(map(int, group.split(","))) for group in groups] or [[*range(8)]]
    if text.startswith("mesh"):
        sizes = dict(re.findall(r"'(\\w+)'=(\\d+)", text))
        axes = re.findall(r"'(\\w+)'", text.split("{")[1])
        assert "," not in text.split("]")[1].split("{")[0] and ":" not in text, text
        grid = np.arange(8).reshape([int(size) for size in sizes.values()])
        grid = np.moveaxis(grid, [list(sizes).index(axis) for axis in axes], range(-len(axes), 0))
        return "mesh", grid.reshape(-1, np.prod([int(sizes[axis]) for axis in axes])).tolist()
    iota = r"\\[([\\d,]+)\\]<=\\[([\\d,]+)\\](?:T\\(([\\d,]+)\\))?"
    shape, reshape, order = re.fullmatch(iota, text).groups()
    grid = np.arange(8).reshape([int(n) for n in reshape.split(",")])
    grid = grid.transpose([int(n) for n in order.split(",")]) if order else grid
    return "iota", grid.reshape([int(n) for n in shape.split(",")]).tolist()

forms = set()
for shape in ((8,), (2, 4), (2, 2, 2)):
    names = "abc"[:len(shape)]
    mesh = Mesh(np.array(jax.devices()).reshape(shape), tuple(names))
    x = jax.device_put(np.ones((16,) * len(shape), np.float32), NamedSharding(mesh, P(*names)))
    for over in itertools.chain(*(itertools.combinations(names, n + 1) for n in range(len(names)))):
        kept = P(*(None if name in over else name for name in names))
        for function in (
            jax.shard_map(
                lambda x: jax.lax.psum(x, over), mesh=mesh, in_specs=x.sharding.spec, out_specs=kept
            ),
            lambda x: x.sum(tuple(map(names.index, over))),
            lambda x: x @ x.swapaxes(-1, -2) if x.ndim > 1 else x @ x,
        ):
            compiled = jax.jit(function).lower(x).compile()
            exchange = (
                r"%([\\w.-]+) = [^\\n]*? (?:all-reduce|all-gather)\\([^\\n]*?"
                r"replica_groups=(\\S+(?: \\{[^}]*\\})?), "
            )
            printed = re.findall(exchange, compiled.as_text())
            assert printed
            (module,) = compiled.runtime_executable().hlo_modules()
            for own in range(8):
                hlo = module.as_serialized_hlo_module_proto()
                uid = _native.jax_add_program(hlo, "f", "", [], "", range(8), own)
                read = {each["name"]: each for each in _native.jax_program(uid)["operations"]}
                for name, text in printed:
                    form, groups = reference(text)
                    forms.add(form)
                    expected = sorted(next(group for group in groups if own in group))
                    assert read[name]["processes"] == expected, (shape, own, name, text, read[name])
                    assert not read[name]["is_exchange_of_unknown"]
print(*sorted(forms))
"""


@pytest.mark.long
def test_groups_are_those_that_the_compiler_prints() -> None:
    forms = subprocess.check_output(
        [sys.executable, "-c", EXCHANGES], text=True, timeout=300
    ).split()
    import jax

    is_recent = jax.__version_info__ >= (0, 10)
    assert forms == ["iota", "lists", "mesh"] if is_recent else "lists" in forms


def _axes(*parts: tuple[int, ...]) -> bytes:
    """AxisRefProto: an axis, and what comes before and in a part of it."""
    return b"".join(
        field(2, field(1, axis) + (field(2, field(1, sub[0]) + field(2, sub[1])) if sub else b""))
        for axis, *sub in parts
    )


def _mesh(*sizes: int, rest: bytes = b"") -> bytes:
    return field(1, b"".join(field(1, field(1, "x") + field(2, size)) for size in sizes) + rest)


def _iota(groups: int, members: int, sizes: bytes, order: bytes = b"") -> bytes:
    return field(1, groups) + field(2, members) + field(3, sizes) + field(4, order)


# Number of the field, its content, and the processes that exchange with process 1 of eight.
FORMS = {
    "none": (2, b"", [*range(8)]),
    "list": (49, field(1, numbers(1, 5)), [1, 5]),
    "lists": (87, field(1, field(1, numbers(1, 2))), [1, 2]),
    "iota in lists": (87, field(2, _iota(2, 4, numbers(8))), [0, 1, 2, 3]),
    "iota": (92, _iota(4, 2, numbers(8)), [0, 1]),
    "transposed iota": (92, _iota(4, 2, numbers(2, 4), numbers(1, 0)), [1, 5]),
    "mesh": (93, _mesh(2, 4) + _axes((0,)), [1, 5]),
    "axes in another order": (93, _mesh(2, 2, 2) + _axes((2,), (0,)), [0, 1, 4, 5]),
    "first part of an axis": (93, _mesh(8) + _axes((0, 1, 2)), [1, 5]),
    "middle part of an axis": (93, _mesh(8) + _axes((0, 2, 2)), [1, 3]),
    "last part of an axis": (93, _mesh(8) + _axes((0, 4, 2)), [0, 1]),
    "two parts of an axis": (93, _mesh(8) + _axes((0, 4, 2), (0, 1, 2)), [0, 1, 4, 5]),
    "list of a mesh": (
        93,
        _mesh(2, 4, rest=field(2, numbers(7, 6, 5, 4, 3, 2, 1, 0))) + _axes((0,)),
        [1, 5],
    ),
    "transposed mesh": (
        93,
        _mesh(4, 2, rest=field(3, field(1, numbers(2, 4)) + field(2, numbers(1, 0)))) + _axes((1,)),
        [1, 5],
    ),
    # A device that does not exist, sizes that do not fit, a form newer than this build:
    "list of nine": (49, field(1, numbers(1, 8)), None),
    "negative": (49, field(1, numbers(1, 2**64 - 1)), None),
    "iota of nine": (92, _iota(3, 3, numbers(9)), None),
    "iota of nothing": (92, b"", None),
    "iota of too many": (92, _iota(2**62, 2**62, numbers(2**62, 4)), None),
    "iota with a wrong order": (92, _iota(4, 2, numbers(2, 4), numbers(1, 1)), None),
    "iota with a far order": (92, _iota(4, 2, numbers(2, 4), numbers(2**40, 0)), None),
    "iota that does not fit": (92, _iota(4, 2, numbers(4)), None),
    "mesh without axes": (93, b"", None),
    "axis that does not exist": (93, _mesh(2, 4) + _axes((2,)), None),
    "part that does not fit": (93, _mesh(8) + _axes((0, 3, 2)), None),
    "parts that overlap": (93, _mesh(8) + _axes((0, 1, 4), (0, 2, 2)), None),
    "part of nothing": (93, _mesh(8) + _axes((0, 0, 0)), None),
    "mesh with a short list": (93, _mesh(2, 4, rest=field(2, numbers(1, 0))) + _axes((0,)), None),
    "mesh with a far device": (
        93,
        _mesh(2, 4, rest=field(2, numbers(*range(1, 9)))) + _axes((0,)),
        None,
    ),
    "form of tomorrow": (87, field(3, b""), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read_or_told_to_be_unknown(form: str) -> None:
    number, content, processes = FORMS[form]
    operation = _all_reduce(field(number, content) if number != 2 else b"")
    assert operation["processes"] == (processes or [])
    assert operation["is_exchange_of_unknown"] == (processes is None)


def _all_reduce(groups: bytes) -> dict[str, Any]:
    x = fake_hlo.Instruction("x", "parameter")
    reduce = fake_hlo.Instruction("sum", "all-reduce", operands=(0,), more=groups)
    hlo = fake_hlo.module("reduce", [x, reduce])
    program = _native.jax_program(_native.jax_add_program(hlo, "f", "", [], "", range(8), 1))
    assert program is not None
    (operation,) = program["operations"]
    return operation
