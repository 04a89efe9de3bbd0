"""What `deepcontext report` says about a JAX program, as text and for programs."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

import deepcontext
from deepcontext.profiler.summaries.jax import operations as jax_operations
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.ui.report import render_report, render_summary, report_to_dict

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
import numpy as np

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "report-json.md"
HERE = Path(__file__).name


@jax.jit
def shaped(x: jax.Array) -> jax.Array:
    y = jnp.exp(x)
    z = y * 3.0
    return jnp.sqrt(z) - x


@jax.jit
def trained(w: jax.Array, x: jax.Array) -> jax.Array:
    return w - 0.1 * jax.grad(lambda v: jnp.sum(jnp.tanh(x @ v) ** 2))(w)


def _work() -> None:
    w = x = jnp.ones((96, 96))
    for _ in range(20):
        w = trained(w, x).block_until_ready()
    np.asarray(w)
    for _ in range(4):
        shaped(x)
    for _ in range(2):
        shaped(jnp.ones((300, 300))).block_until_ready()
    shaped(x)[0, 0].item()


def _line(text: str) -> int:
    """Return the number of the only line of this file's code that begins with a text."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.strip().startswith(text)]
    return number


@pytest.fixture(scope="module")
def profile() -> deepcontext.Profile:
    jax.clear_caches()
    deepcontext.start(jax_exact=True)
    _work()
    return deepcontext.stop()


def _text(profile: deepcontext.Profile, width: int = 160, **options: Any) -> str:
    file = io.StringIO()
    options.setdefault("full", True)
    render_report(profile, console=Console(file=file, width=width), **options)
    return file.getvalue()


def _section(text: str, title: str) -> list[str]:
    """Return the lines of one section, without its title."""
    (found,) = [part for part in text.split("\n\n") if part.startswith(title)]
    return found.splitlines()[1:]


def test_jitted_functions_with_launches_and_compilations(profile: deepcontext.Profile) -> None:
    lines = _section(_text(profile), "Jitted functions")
    (trained_row,) = [line for line in lines if line.endswith("jit(trained)")]
    (shaped_row,) = [line for line in lines if line.endswith("jit(shaped)")]
    assert re.search(r"%\s+20 .* 1x \d", trained_row)
    assert re.search(r"%\s+7 .* 2x \d", shaped_row)
    assert "on your lines" in lines[-1]


def test_phases_and_lines_of_the_device_time(profile: deepcontext.Profile) -> None:
    text = _text(profile)
    phases = _section(text, "Phases of the device time")
    assert any("backward" in line for line in phases)
    assert any("forward" in line for line in phases)
    lines = _section(text, "Source lines by device time")
    assert any(f"{HERE}:{_line('return w - 0.1')}" in line for line in lines)
    tree = _section(text, "Call paths by device time")
    assert any("jit(trained)" in line for line in tree)


def test_fusions_of_several_lines_name_every_member(profile: deepcontext.Profile) -> None:
    text = " ".join(_section(_text(profile, limit=40), "Fusions of several source lines"))
    first = _line("y = jnp.exp(x)")
    for line, primitive in enumerate(("exp", "mul", "sqrt"), first):
        assert re.search(rf"{HERE}:{line} [^;]*{primitive}", re.sub(r"\s+", " ", text))
    fusions = jax_operations.fusions(profile, several_lines=True)
    (small, large) = sorted((f for f in fusions if "shaped" in f.program), key=lambda f: f.bytes)
    # one name for both in the tree, but each program has its own time and cost
    assert (small.program, small.executions, small.flops) == (
        "jit_shaped(f32[96,96])",
        5,
        4 * 96**2,
    )
    assert (large.program, large.executions, large.bytes) == (
        "jit_shaped(f32[300,300])",
        2,
        2 * 4 * 300**2,
    )
    assert small.intensity == pytest.approx(0.5)
    assert large.bytes_per_second == pytest.approx(large.bytes * 2e9 / large.device_ns)


def test_recompilations_say_why_and_where(profile: deepcontext.Profile) -> None:
    text = re.sub(r"\s+", " ", " ".join(_section(_text(profile), "Recompilations")))
    assert "shaped: 1x" in text
    assert f"{HERE}:{_line('shaped(jnp.ones((300')}" in text
    assert "argument 'x' changed from f32[96,96] to f32[300,300]" in text


def test_waits_and_copies_by_line(profile: deepcontext.Profile) -> None:
    lines = _section(_text(profile), "Waits and copies")
    for start, times, what in (
        ("w = trained(w, x)", 20, "wait for the device"),
        ("np.asarray(w)", 1, "wait for the device"),
        ("shaped(jnp.ones((300", 2, "wait for the device"),
        ("shaped(x)[0, 0].item()", 1, "wait for the device"),
    ):
        (row,) = [line for line in lines if line.endswith(f"{HERE}:{_line(start)}")]
        assert re.search(rf"\s{times}\s+(\S+ \S+  )?{what}", row)


def test_the_share_on_your_lines_is_what_the_table_of_lines_has() -> None:
    deepcontext.start(jax_exact=True, cpu_rate=0)
    for _ in range(3):
        (jnp.ones((96, 96)) @ jnp.ones((96, 96))).block_until_ready()  # outside of jit
    profile = deepcontext.stop()
    accounting = jax_programs.device_accounting(profile)
    assert (
        sum(row.exclusive for row in by_line(profile, "device_time_ns", 0).rows)
        == accounting.on_user_line
    )
    assert 0 < accounting.at_call <= accounting.on_user_line == accounting.total
    text = re.sub(r"\s+", " ", _text(profile))
    assert re.search(r"100 % of it is on your lines \([\d.]+ % by the call alone", text)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(profile: deepcontext.Profile, width: int) -> None:
    assert max(cell_len(line) for line in _text(profile, width).splitlines()) <= width


def test_summary_has_the_device_time_as_a_tree(profile: deepcontext.Profile) -> None:
    file = io.StringIO()
    render_summary(profile, console=Console(file=file, width=100), path="x.dcprof")
    text = file.getvalue()
    assert "on the device: " in text
    assert "jit(trained)" in text
    assert len(text.splitlines()) <= 36  # three tables of at most five lines, and the tree


def test_summary_of_one_launch_is_in_the_singular() -> None:
    ready = jax.block_until_ready(np.ones((64, 64), np.float32))
    jax.clear_caches()
    deepcontext.start(jax_exact=True)
    shaped(ready).block_until_ready()
    file = io.StringIO()
    render_summary(deepcontext.stop(), console=Console(file=file, width=100), path=None)
    assert " in 1 launch of 1 jitted function; " in re.sub(r"\s+", " ", file.getvalue())


def test_report_for_programs_has_every_documented_key_and_the_same_numbers(
    profile: deepcontext.Profile,
) -> None:
    report: Any = report_to_dict(profile, limit=1000, metric="host_time_ns")
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    said = report["jax"]
    assert sum(f["device_time_ns"] for f in said["functions"]) == said["device_time_ns"]
    assert sum(said["device_time_by_phase_ns"].values()) == said["device_time_ns"]
    assert sum(o["device_time_ns"] for o in said["operations"]) == said["device_time_ns"]
    assert said["operation_count"] == len(said["operations"])
    assert {f["name"]: f["launches"] for f in said["functions"]}["jit(trained)"] == 20
    page = PAGE.read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `jax\.([\w.]+)` \|", page, re.MULTILINE))
    assert set(_keys(said)) == documented


def _keys(value: object, path: str = "") -> set[str]:
    if isinstance(value, list):
        return set().union(*(_keys(item, path) for item in value), set())
    if not isinstance(value, dict):
        return set()
    if path.endswith("by_phase_ns"):
        return set()
    if path.count(".") and path.endswith(("source", "path")) and path != "operations.source":
        return set()  # documented once
    found = set()
    for key, item in value.items():
        name = f"{path}.{key}".lstrip(".").replace("fusions_of_several_lines.", "operations.")
        found |= {name} | _keys(item, name)
    return found


def test_a_program_without_jax_has_no_such_part(
    make_profile: Any, profile: deepcontext.Profile
) -> None:
    assert jax_programs.device_accounting(profile).total > 0
    plain = make_profile([0], [profile.frame(0)])
    assert report_to_dict(plain, limit=3, metric="host_time_ns")["jax"] is None
    assert "Jitted functions" not in _text(plain)


def test_an_estimated_count_is_marked(profile: deepcontext.Profile) -> None:
    """Which counts are estimates is planted: whether a loop is seen in all launches depends on windows."""
    first = jax_operations.operations(profile)[0]
    content = json.loads(profile.sections["jax"])
    assert not first.is_estimated
    (place,) = [
        [program, index]
        for program, index, executions, device_ns in content["times"]
        if (executions, device_ns) == (first.executions, first.device_ns)
    ]
    content["estimated"] = [place]
    planted = dataclasses.replace(
        profile, sections={**profile.sections, "jax": json.dumps(content).encode()}
    )
    marked = [each for each in jax_operations.operations(planted) if each.is_estimated]
    assert [(each.name, each.executions) for each in marked] == [(first.name, first.executions)]
    lines = _section(_text(planted), "Operations of compiled programs")
    (row,) = [line for line in lines if re.search(rf" ~{first.executions} ", line)]
    assert first.name in row
    assert "~: estimated" in " ".join(lines)
    assert "~" not in " ".join(_section(_text(profile), "Operations of compiled programs"))
    report: Any = report_to_dict(planted, limit=20)
    rows = report["jax"]["operations"]
    assert [row["name"] for row in rows if row["executions_are_estimated"]] == [first.name]
