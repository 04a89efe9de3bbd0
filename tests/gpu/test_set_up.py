"""The way to a table, shown without a GPU: a session against the fakes, with what run.sh has built.

Runs where DEEPCONTEXT_FAKES names the folder of the compiled fakes (`run.sh PYTHON fakes` compiles them).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import overhead
import pytest
from harness import SESSION_OF_KERNELS
from judging import compare, share_on_lines

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from harness import Bench

FAKES = os.environ.get("DEEPCONTEXT_FAKES", "")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not FAKES, reason="no $DEEPCONTEXT_FAKES")]
SOURCES = Path(__file__).resolve().parents[1] / "fakes"
sys.path.insert(0, str(SOURCES))


def test_a_session_against_the_fakes(bench: Bench) -> None:
    outcome = bench.run(
        f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(SOURCES)!r})
        import kit
        gpu = kit.FakeGpu(Path({FAKES!r}), kit.CUPTI, initialize=False)
        gpu.initialize()
        def launch():
            gpu.launch("k", us=10, count=100)
        launch()
        gpu.deliver()
        """
    )
    bench.row("fakes: kernels below their line", str(outcome.under("launch")), "100")
    assert outcome.status == "ran", outcome.reason
    assert outcome.under("launch") == {"k": 100}


def test_kernels_are_compared_and_found_on_lines(bench: Bench) -> None:
    """What the tests of hardware judge by, on sessions against the fakes."""
    program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(SOURCES)!r})
import kit
gpu = kit.FakeGpu(Path({FAKES!r}), kit.CUPTI, initialize=False)
gpu.initialize()
gpu.capture_begin()
gpu.launch("in_a_graph", us=20)
graph = gpu.instantiate(gpu.capture_end())
def work():
    gpu.launch("gemm", us=50, count=30)
    gpu.launch("short", us=1, count=30)
    for _ in range(10):
        gpu.replay(graph)
    gpu.deliver()
"""
    sessions = "\nreport(sessions=[session() for _ in range(3)])\n"
    run = bench.run(program + SESSION_OF_KERNELS + sessions, is_profiled=False)
    own = run.values["sessions"]
    truth = {"gemm": [30, 1_500_000], "short": [30, 30_000], "in_a_graph": [10, 200_000]}
    assert own == [truth] * 3
    found = compare(own, [truth] * 3)
    bench.row("fakes: comparison with what ran", str(found), "equal")
    assert (found.unequal, found.compared, found.deviation) == ({}, 2, 0.0)
    slower = [{**truth, "gemm": [30, 1_600_000], "other": [1, 5]}] * 3
    found = compare(own, slower)
    assert found.unequal == {"other": (0, 3)}
    assert (found.kernel, round(found.deviation, 4)) == ("gemm", 0.0625)

    profiled = bench.run(program + "work()\n")
    assert profiled.profile is not None
    assert share_on_lines(profiled.profile, "program.py") == 1
    assert share_on_lines(profiled.profile, "program.py", kind=FrameKind.HLO) == 0
    assert share_on_lines(profiled.profile, "other.py") == 0


@pytest.mark.parametrize(
    ("framework", "workloads", "ways"),
    [
        ("torch", ("gpt2", "resnet50", "dlrm", "decode"), overhead.TORCH_WAYS[:4]),
        ("jax", ("jax_transformer",), overhead.JAX_WAYS),
    ],
)
def test_the_table_of_overhead(
    bench: Bench, framework: str, workloads: tuple[str, ...], ways: tuple[str, ...]
) -> None:
    """Small models on the processor: the way to a table, not a figure."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    for place, workload in enumerate(workloads):
        found = overhead.in_turn(workload, ways if place == 0 else ways[:2], "cpu", 10, limit_s=0)
        for check, figures in overhead.rows(workload, found):
            bench.row(f"processor, {check}", figures, "no bound")
        failures = {way: run.failure for way, runs in found.items() for run in runs}
        assert not any(failures.values()), failures
        assert found["deepcontext"][0].file_bytes > 0


def test_a_package_has_what_it_needs_beside_it() -> None:
    import deepcontext

    folder = Path(deepcontext.__file__).parent
    assert list(folder.glob("_native*.so"))
    assert (folder / "libdeepcontext_injection.so").exists()
