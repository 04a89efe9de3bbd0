"""torch.compile: compiling is one frame, compiled regions are linked, kernels know their lines."""

from __future__ import annotations

import io
import linecache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.compiled_kernels import CompiledKernels
from deepcontext.profiler.summaries.compiled_kernels import fused_at
from deepcontext.ui.report import render_report, report_to_dict

torch = pytest.importorskip("torch")
nn = torch.nn

_MARKER = "torch.compile: compiling"
# Distinct operators that a compiler runs while it traces and lowers.
_MOST_FOLDED_NODES = 250

PROGRAM = """
    import sys
    import torch, deepcontext

    torch._inductor.config.cpp.enable_kernel_profile = True

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(8, 8)
        def forward(self, batch):
            hidden = torch.sin(self.fc(batch)) * 2
            return torch.relu(hidden).sum()

    net = Net()
    compiled = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(batch):
        loss = compiled(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    deepcontext.start("out.dcprof")
    for _ in range(3):
        step(torch.randn(4, 8))
    deepcontext.stop()
"""


@pytest.mark.long
def test_a_compiled_training_step(script: Any, tmp_path: Path) -> None:
    script.run(PROGRAM, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"), INDUCTOR_PROVENANCE="1")
    recording = script.recording()
    assert recording.counters["backward_links_missed"] == 0

    markers = recording.nodes(FrameKind.MARKER, _MARKER)
    tree = recording.profile.tree
    folded = sum(int(tree.subtree_end[node]) - node - 1 for node in markers)
    assert markers
    assert 0 < folded < _MOST_FOLDED_NODES
    for node in markers:
        kinds = {recording.frame(at).kind for at in range(node + 1, int(tree.subtree_end[node]))}
        assert kinds <= {FrameKind.OPERATOR, FrameKind.SCOPE, FrameKind.NATIVE}
        assert recording.phase(node) == Phase.OTHER

    call = [
        "MainThread",
        "<module>: step(torch.randn(4, 8))",
        "step: loss = compiled(batch)",
        "OptimizedModule.__call__",
        "OptimizedModule",
    ]
    (region,) = recording.paths("Torch-Compiled Region: 0/0")
    assert region[:5] == call
    assert recording.calls("Torch-Compiled Region: 0/0") == 3
    assert recording.calls("CompiledFunction") == recording.calls("CompiledFunctionBackward") == 3
    (backward,) = recording.paths("CompiledFunctionBackward")
    assert backward[:5] == call
    assert backward[-2] == "CompiledFunction"
    (node,) = recording.operators("CompiledFunctionBackward")
    assert recording.phase(node) == Phase.BACKWARD

    kernels = CompiledKernels.from_sections(recording.profile.sections)
    names = {
        recording.frame(node).name
        for node in recording.operators()
        if "cpp_fused" in recording.frame(node).name
    }
    assert len(names) >= 2  # forward and backward
    hidden, result = "hidden = torch.sin(self.fc(batch)) * 2", "return torch.relu(hidden).sum()"
    seen = set()
    for name in names:
        (launch,) = kernels.named(name)
        assert launch.is_complete
        lines = {linecache.getline(frame.file, frame.line).strip() for frame in launch.source}
        assert lines <= {hidden, result}
        assert hidden in lines or "sin" not in name
        seen |= lines
    assert seen == {hidden, result}
    (collector,) = (c for c in recording.profile.trust.collectors if c.name == "torch.compile")
    assert collector.status == "ran"

    files = {frame.file for frame in recording.profile.frames if frame.kind is FrameKind.PYTHON}
    generated = {file for file in files if file.startswith(str(tmp_path / "cache"))}
    assert generated
    assert not any(map(is_user_file, generated))
    _check_views(recording, {hidden, result})


def _check_views(recording: Any, lines: set[str]) -> None:
    """Report, page and JSON name the lines fused into each kernel, and what the kernel took."""
    profile = recording.profile
    report: Any = report_to_dict(profile, limit=20)
    rows = report["compiled_kernels"]["rows"]
    assert len(rows) >= 2  # forward and backward, without the calls of ATen operators
    fused = [
        {linecache.getline(line["file"], line["line"]).strip() for line in row["lines"]}
        for row in rows
    ]
    assert set.union(*fused) == lines
    for row in rows:
        assert row["name"].startswith("cpp_fused_")
        assert row["is_complete"]
        assert row["calls"] == 3
        assert row["time_ns"] > 0

    output = io.StringIO()
    render_report(profile, console=Console(file=output, width=120))
    text = output.getvalue()
    shown = {f"{Path(line['file']).name}:{line['line']}" for row in rows for line in row["lines"]}
    section = text.partition("Kernels of torch.compile")[2].partition("\n\n")[0]
    assert any(each in section for each in shown)

    told = {
        name: [kernel.name for kernel in fused_at(profile, [int(node)])]
        for node in recording.operators()
        if (name := recording.frame(node).name) == "aten::addmm" or "cpp_fused" in name
    }
    assert len(told) >= 3
    for name, kernels in told.items():
        assert kernels == ([] if name == "aten::addmm" else [name[name.index("cpp_fused") :]])


def simple(value: Any) -> Any:
    value = torch.sin(value)
    torch._dynamo.graph_break()
    return torch.cos(value).sum()


def run_compiled(function: Any, rounds: int) -> None:
    value = torch.ones(4, requires_grad=True)
    for _ in range(rounds):
        function(value).backward()


@pytest.mark.filterwarnings("ignore")
def test_graph_breaks_make_a_region_each(record: Any) -> None:
    torch.compiler.reset()
    compiled = torch.compile(simple, backend="aot_eager")
    recording = record(run_compiled, compiled, 3)
    assert recording.counters["backward_links_missed"] == 0
    regions = {
        recording.frame(node).name: recording.path(node)
        for node in recording.operators()
        if "Torch-Compiled Region" in recording.frame(node).name
    }
    assert len(regions) == 2
    for path in regions.values():
        assert path[0] == "run_compiled: function(value).backward()"
    again = record(run_compiled, compiled, 3)
    assert not again.nodes(FrameKind.MARKER, _MARKER)
    assert again.calls("CompiledFunctionBackward") == 6


@pytest.mark.long
def test_importing_the_compiler_is_no_compiling(script: Any) -> None:
    # DistributedDataParallel and optimizers import it in programs that compile nothing.
    script.run("""
        import torch, deepcontext
        deepcontext.start("out.dcprof", cpu_rate=1000)
        import torch._dynamo.convert_frame
        body = "import time\\nclass Body:\\n  while time.process_time() < end: pass"
        code = compile(body, torch._dynamo.convert_frame.__file__, "exec")
        import time
        exec(code, {"end": time.process_time() + 0.2})
        deepcontext.stop()
    """)
    profile = script.recording().profile
    names = {profile.frame(node).name for node in range(len(profile.tree))}
    assert {"<module>", "Body"} <= names
    assert _MARKER not in names
