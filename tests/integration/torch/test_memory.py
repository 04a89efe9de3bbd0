"""Memory of real tensors: at the right line, of the right size, for as long as they live."""

from __future__ import annotations

import json
import linecache
import re
import subprocess
import sys
import threading
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from deepcontext import _native
from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.memory_metrics import ROLES
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.ui.report import render_report
from deepcontext.ui.report.machine import report_to_dict

torch = pytest.importorskip("torch")

import deepcontext  # noqa: E402

FLOAT = 4
MIB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def first_optimizer() -> None:
    """Torch 2.6 changes `sys.path` for good when an optimizer is made for the first time."""
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1).step()


def by_line(recording: Any, metric: str) -> dict[str, int]:
    """A metric by the workload's line that is nearest to it, where it is not 0."""
    profile = recording.profile
    if metric not in profile.metrics:
        return {}
    found: Counter[str] = Counter()
    rows = profile.metrics[metric]
    for node, total in zip(rows.node.tolist(), rows.total.tolist(), strict=True):
        lines = [text for text in recording.path(node) if ": " in text]
        found[lines[-1] if lines else "elsewhere"] += total
    return {line: total for line, total in found.items() if total}


def pool(recording: Any, name: str = "cpu") -> memory_summary.Pool:
    use = memory_summary.memory_use(recording.profile)
    assert use is not None
    (found,) = (each for each in use.pools if each.name == name)
    return found


def collector(recording: Any) -> Any:
    (found,) = (c for c in recording.profile.trust.collectors if c.name == "memory")
    return found


def tensor(count: int) -> Any:
    return torch.empty(count, dtype=torch.float32)


def known_peak() -> None:
    kept = tensor(1000 * MIB // FLOAT // 1000)  # 1 MiB
    large = tensor(8 * MIB // FLOAT)
    del large
    small = tensor(3 * MIB // FLOAT)
    del kept, small


def test_a_known_peak_is_made_of_what_was_held_then(record: Any) -> None:
    recording = record(known_peak)
    line = "known_peak: "
    assert collector(recording).status is Status.RAN
    assert pool(recording).peak_bytes == 9 * MIB
    held = {key: value for key, value in by_line(recording, "peak_bytes").items() if value}
    assert sum(held.values()) == 9 * MIB
    by_caller = peak_by_caller(recording)
    assert by_caller == {
        f"{line}kept = tensor(1000 * MIB // FLOAT // 1000)  # 1 MiB": MIB,
        f"{line}large = tensor(8 * MIB // FLOAT)": 8 * MIB,
    }
    assert sum(by_line(recording, "alloc_bytes").values()) == 12 * MIB
    assert by_line(recording, "live_bytes") == {}


def peak_by_caller(recording: Any) -> dict[str, int]:
    rows = recording.profile.metrics["peak_bytes"]
    found: Counter[str] = Counter()
    for node, total in zip(rows.node.tolist(), rows.total.tolist(), strict=True):
        found[next(text for text in recording.path(node) if text.startswith("known_peak"))] += total
    return dict(found)


def leaky_loop(steps: int, kept: list[Any]) -> None:
    weight = torch.ones(64, 1024, requires_grad=True)
    for _ in range(steps):
        batch = torch.ones(64, 1024)
        loss = (batch * weight).sin().sum()
        kept.append(loss)  # with its graph
        (batch * 2).sum()
        deepcontext.step()


def test_a_leaky_loop_grows_at_its_line_step_by_step(record: Any) -> None:
    kept: list[Any] = []
    recording = record(leaky_loop, 24, kept)
    use = memory_summary.memory_use(recording.profile)
    assert use is not None
    assert (use.steps, use.growth_since_step, use.growth_steps) == (24, 8, 16)
    grown = {each.line: each for each in memory_summary.growth(recording.profile) if each.is_leak}
    text = {line: linetext(line) for line in grown}
    # A step keeps the batch, which the product needs, the product, which the sine needs, and the sum.
    tensor_bytes = 64 * 1024 * FLOAT
    by_text = {text[line]: each for line, each in grown.items()}
    product = by_text["loss = (batch * weight).sin().sum()"]
    batch = by_text["batch = torch.ones(64, 1024)"]
    assert product.size_bytes == 16 * (tensor_bytes + FLOAT)
    assert batch.size_bytes == 16 * tensor_bytes
    assert (product.grown_steps, product.steps) == (16, 16)
    assert set(by_text) == {"loss = (batch * weight).sin().sum()", "batch = torch.ones(64, 1024)"}
    assert pool(recording).growth_bytes == 16 * (2 * tensor_bytes + FLOAT)
    (finding,) = [
        each
        for each in deepcontext_findings(recording)
        if each.title.startswith("memory allocated")
        and "grew in 16 of 16" in each.title
        and "test_memory.py" in each.title
        and each.evidence["growth_bytes"] > 16 * tensor_bytes
    ]
    # One finding for both lines.
    assert finding.evidence["step_growth_bytes"] == 2 * tensor_bytes + FLOAT


def linetext(line: int) -> str:
    return linecache.getline(__file__, line).strip()


def deepcontext_findings(recording: Any) -> Any:
    return run_analyzers(recording.profile, only=["memory"])


def test_a_loop_that_keeps_nothing_does_not_grow(record: Any) -> None:
    def loop() -> None:
        for _ in range(20):
            torch.ones(1000).add(1)
            deepcontext.step()

    recording = record(loop)
    assert memory_summary.growth(recording.profile) == ()
    assert pool(recording).growth_bytes == 0


def test_frees_on_other_threads_go_to_the_allocating_path(record: Any) -> None:
    def free(tensors: list[Any]) -> None:
        tensors.clear()

    def workload() -> None:
        held = [torch.ones(100), torch.ones(100)]
        worker = threading.Thread(target=free, args=(held,))
        worker.start()
        worker.join()
        workload.kept = torch.zeros(7)  # type: ignore[attr-defined]

    recording = record(workload)
    live = by_line(recording, "live_bytes")
    assert live == {"workload: workload.kept = torch.zeros(7)  # type: ignore[attr-defined]": 28}
    assert sum(by_line(recording, "alloc_bytes").values()) == 828


def test_what_lived_before_and_what_outlives_the_session(record: Any) -> None:
    early = [torch.ones(5000)]
    late: list[Any] = []

    def workload() -> None:
        early.clear()
        late.append(torch.ones(10))

    for _ in range(2):
        recording = record(workload)
        assert sum(by_line(recording, "live_bytes").values()) == 40
        assert pool(recording).live_bytes == 40
        late.clear()
        early.append(torch.ones(5000))


def training(steps: int) -> tuple[Any, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        batch = torch.randn(512, 64)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        deepcontext.step()
    return model, optimizer


def test_roles_of_a_training_step(record: Any) -> None:
    kept: list[Any] = []
    recording = record(lambda: kept.append(training(6)))
    parameters = sum(p.numel() for p in kept[0][0].parameters()) * FLOAT
    roles = pool(recording).peak_role_bytes
    assert sum(roles.values()) == pool(recording).peak_bytes
    assert roles["parameter"] == parameters
    assert roles["optimizer"] == parameters  # the momentum of each
    # Hidden units after ReLU, saved for the backward.
    assert roles["activation"] >= 512 * 128 * FLOAT
    assert 0 < roles["gradient"] <= parameters
    totals = {role: sum(by_line(recording, f"peak_{role}_bytes").values()) for role in ROLES}
    assert totals == {role: roles[role] for role in ROLES}


def test_activations_of_a_closure_are_no_optimizer_state(record: Any) -> None:
    """Lightning and LBFGS run forward and backward inside the optimizer's step."""
    kept: list[Any] = []

    def workload() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        data = torch.randn(512, 64)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = model(data).square().mean()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        kept.extend((model, optimizer))

    roles = pool(record(workload)).peak_role_bytes
    momentum = sum(p.numel() for p in kept[0].parameters()) * FLOAT
    # Beside the momentum the loss, one number: what a closure makes outside of modules.
    assert momentum <= roles["optimizer"] <= momentum + FLOAT
    assert roles["activation"] >= 512 * 256 * FLOAT


def test_role_of_batches_of_a_data_loader(record: Any) -> None:
    def workload() -> None:
        data = torch.utils.data.TensorDataset(torch.randn(64, 256))
        model = torch.nn.Linear(256, 256)
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=32):
            model(batch).sum().backward()

    roles = pool(record(workload)).peak_role_bytes
    assert roles["input"] >= 32 * 256 * FLOAT
    assert roles["parameter"] == 0  # the model was gone before anybody looked


def test_gradients_are_known_when_they_are_given_back(record: Any) -> None:
    def workload() -> None:
        weight = torch.nn.Parameter(torch.ones(1000, 100))
        for _ in range(3):
            (weight * 2).sum().backward()
            torch.ones(1000, 100)  # the peak, with the gradient alive
            weight.grad = None

    assert pool(record(workload)).peak_role_bytes["gradient"] == 400_000


def test_memory_can_be_left_out(record: Any) -> None:
    recording = record(known_peak, memory=False)
    assert collector(recording).status is Status.OFF
    assert not [name for name in recording.profile.metrics if name.endswith("_bytes")]
    assert memory_summary.memory_use(recording.profile) is None


def test_an_allocator_of_another_kind_is_refused_and_nothing_is_hooked(
    record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The trial asks for a size the allocator never saw.
    genuine = _native.torch_finish_host_check
    monkeypatch.setattr(
        _native,
        "torch_finish_host_check",
        lambda address, size: genuine(address, size + 1),
    )
    recording = record(known_peak)
    # Builds with CUDA still watch its allocator.
    assert collector(recording).status in {Status.UNAVAILABLE, Status.DEGRADED}
    assert "is requested in another size" in collector(recording).reason
    assert "alloc_bytes" not in recording.profile.metrics
    monkeypatch.undo()
    assert pool(record(known_peak)).peak_bytes == 9 * MIB


@pytest.mark.long
def test_the_program_sees_no_difference(script: Any) -> None:
    output = script.run("""
        import deepcontext, torch, os
        with deepcontext.profile("out.dcprof"):
            kept = torch.arange(1000.0)
            child = os.fork()
            if child == 0:
                del kept
                again = torch.ones(10) + 1
                os._exit(7 if again.sum().item() == 20 else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print(kept.sum().item())
        del kept
    """)
    assert output.split() == ["7", "499500.0"]
    recording = script.recording()
    assert pool(recording).live_bytes == 4000


def test_the_section_is_plain_json(record: Any) -> None:
    content = json.loads(record(known_peak).profile.sections["memory"])
    assert content["version"] == 1
    assert content["pools"][0]["peak_bytes"] == 9 * MIB


@pytest.mark.long
def test_the_leak_of_the_documentation_is_found(script: Any) -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "memory.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (each for each in blocks if "import torch" in each)
    script.run(block)
    grown = memory_summary.growth(script.recording("leak.dcprof").profile)
    (leak,) = (each for each in grown if each.is_leak)
    assert leak.line == 1 + block.splitlines().index(
        "        loss = (torch.ones(64, 1024) * weight).sin().sum()"
    )
    assert (leak.grown_steps, leak.steps) == (16, 16)


def test_the_report_shows_memory_to_people_and_programs(record: Any) -> None:
    recording = record(leaky_loop, 24, [])
    report = report_to_dict(recording.profile, limit=5, metric="host_time_ns")
    memory = json.loads(json.dumps(report))["memory"]
    assert memory["pools"][0]["peak_bytes"] == pool(recording).peak_bytes
    lines = memory["lines"]
    assert {row["file"] for row in lines["held_at_peak"]} == {__file__}
    assert lines["growth"][0]["grown_steps"] == 16
    assert lines["growth"][0]["is_leak"]
    page = (Path(__file__).parents[3] / "docs" / "reference" / "report-json.md").read_text()
    keys = {f"memory.{key}" for key in memory if key != "gpu_lines"}
    keys |= {f"memory.pools.{key}" for key in memory["pools"][0]}
    assert set(re.findall(r"^\| `(memory\.[\w.]+)`", page, re.MULTILINE)) == {
        *keys,
        "memory.lines.held_at_peak",
        "memory.lines.growth",
    }
    console = Console(file=StringIO(), width=120)
    render_report(recording.profile, console=console, limit=5)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "at most (in step 24 of 24" in text
    assert "leak?" in text
    assert "loss = (batch * weight).sin().sum()" in text


@pytest.mark.long
def test_snapshots_while_other_threads_make_gradients() -> None:
    # Backward passes put gradients in their places without the GIL.
    program = """
import threading
import torch
import deepcontext
from deepcontext.collectors.torch import memory as torch_memory

def train():
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(40)))
    batch = torch.ones(2, 4)
    while not over.is_set():
        model.zero_grad()
        model(batch).sum().backward()

over = threading.Event()
deepcontext.start(cpu_rate=0, snapshot_interval=0)
threads = [threading.Thread(target=train) for _ in range(2)]
for thread in threads: thread.start()
known = [torch_memory._known_tensors() for _ in range(ROUNDS)]
over.set()
for thread in threads: thread.join()
model = torch.nn.Linear(4, 4)
model(torch.ones(2, 4)).sum().backward()
assert len(torch_memory._known_tensors()[torch_memory.memory_metrics.GRADIENT]) >= 2
deepcontext.stop()
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program.replace("ROUNDS", "100")],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.long
@pytest.mark.parametrize("clear", ["parameter.grad = None", "setattr(parameter, 'grad', None)"])
@pytest.mark.parametrize("mode", ["nullcontext()", "torch.device('cpu')"])
def test_gradients_that_another_thread_destroys_are_not_read(clear: str, mode: str) -> None:
    """A device as context makes `__torch_function__` the innermost frame of each such statement."""
    program = f"""
import sys
import threading
from contextlib import nullcontext
import torch
from deepcontext.collectors.torch import memory as torch_memory

def destroy():
    for parameter in parameters:
        {clear}

def look():
    while not over.is_set():
        torch_memory._gradient_addresses(parameters)

parameters = [torch.nn.Parameter(torch.ones(64)) for _ in range(30)]
over = threading.Event()
sys.setswitchinterval(1e-6)
thread = threading.Thread(target=look)
thread.start()
with {mode}:
    for _ in range(1000):
        for parameter in parameters:
            parameter.grad = torch.ones(64)
        destroy()
over.set()
thread.join()
for parameter in parameters:
    parameter.grad = torch.ones(64)
assert len(torch_memory._gradient_addresses(parameters)) == len(parameters)
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
