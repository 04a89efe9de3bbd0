"""Collectives of NCCL's process group: torch's own macros say what runs, a fake CUPTI how long it took.

No NCCL is here. What ProcessGroupNCCL does with the macros is known from its source only.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist

from deepcontext import _native
from deepcontext.collectors.gpu.nvidia import NvidiaGpu
from deepcontext.collectors.python.frames import PythonFrames
from deepcontext.collectors.torch.operators import TorchOperators
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.summaries.communication import by_operation
from deepcontext.profiler.summaries.late_ranks import by_lateness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kit import FakeGpu

    from tests.collectors.gpu.conftest import Recording

    Collective = Callable[..., None]
    Record = Callable[[Callable[[], None]], Recording]

pytestmark = pytest.mark.skipif(
    not dist.is_available(), reason="this torch has no torch.distributed"
)

US = 1_000
FLOAT = 6  # c10::ScalarType
COLLECTORS = (PythonFrames, TorchOperators, NvidiaGpu)
KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The macros of the installed torch, compiled."""
    compiler = shutil.which("g++")
    if compiler is None or torch.__file__ is None:
        pytest.skip("no g++")
    root = Path(torch.__file__).parent
    if not (root / "include" / "ATen" / "record_function.h").exists():
        pytest.skip("this torch comes without headers")
    kept = os.environ.get("DEEPCONTEXT_FAKES")  # as in conftest.py
    folder = Path(kept) if kept else tmp_path_factory.mktemp("group_calls")
    built, source = folder / "libgroup_calls.so", Path(__file__).with_name("group_calls.cpp")
    if built.exists() and built.stat().st_mtime > source.stat().st_mtime:
        return ctypes.CDLL(str(built))
    flags = ["-std=c++20", "-O0", "-DNDEBUG", "-fPIC", "-shared", f"-isystem{root / 'include'}"]
    links = [f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10"]
    command = [compiler, *flags, str(source), "-o", str(built), *links]
    subprocess.run(command, check=True, timeout=600)
    return ctypes.CDLL(str(built))


@dataclass(frozen=True)
class Groups:
    """What a test's process groups run."""

    library: ctypes.CDLL
    gpu: FakeGpu

    def call(self, name: str, *, elements: int = 1024, group: str = "0", p2p: bool = False) -> Any:
        """Return a function that lets `work` launch, inside what a process group says."""

        def run(work: Callable[[], None]) -> None:
            self.library.group_call(
                name.encode(),
                group.encode(),
                ctypes.c_int64(elements),
                ctypes.c_int64(elements),
                FLOAT,
                ctypes.c_int64(1),
                int(p2p),
                2,
                ctypes.CFUNCTYPE(None)(work),
            )

        return run

    def all_reduce(self, us: float, *, group: str = "0", elements: int = 1024) -> None:
        """Run an all-reduce whose kernel takes so long, below its operator of c10d."""
        inside = self.call("allreduce", elements=elements, group=group)
        with inside_operator(lambda: inside(lambda: self.gpu.launch(KERNEL, us=us, stream=9))):
            torch.ops.c10d.allreduce_.made(torch.ones(1))


_inside: list[Callable[[], None]] = []


class inside_operator:  # noqa: N801
    """What the made operator does meanwhile."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def __enter__(self) -> None:
        _inside.append(self._work)

    def __exit__(self, *_: object) -> None:
        _inside.pop()


def _made(x: torch.Tensor) -> torch.Tensor:
    _inside[-1]()
    return x


@pytest.fixture(scope="session")
def made_operator() -> Iterator[None]:
    """An overload of c10d's operator, which the observer sees as that of a program."""
    made = torch.library.Library("c10d", "FRAGMENT")
    made.define("allreduce_.made(Tensor x) -> Tensor")
    made.impl("allreduce_.made", _made, "CPU")
    yield
    made._destroy()


@pytest.fixture
def groups(library: ctypes.CDLL, nvidia: FakeGpu, made_operator: None) -> Groups:
    del made_operator
    return Groups(library, nvidia)


@pytest.fixture
def record_rank(record: Any) -> Callable[..., Recording]:
    """Return a function that records a rank of two; their default group is that of torch's fake."""

    def run(work: Callable[[], None], rank: int = 0) -> Recording:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", rank=rank, world_size=2, store=FakeStore())
        try:
            return record(work, COLLECTORS)  # type: ignore[no-any-return]
        finally:
            dist.destroy_process_group()

    return run


def section(recording: Recording) -> dict[str, Any]:
    return json.loads(recording.profile.sections["collectives"])  # type: ignore[no-any-return]


def test_the_layout_is_found() -> None:
    assert _native.torch_load_group_calls() == ""


@pytest.mark.long
def test_finding_the_layout_takes_no_memory() -> None:
    """Torch's constructor makes a list of the group's ranks, however many it is told of."""
    program = """
import resource
import torch
from deepcontext import _native
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert _native.torch_load_group_calls() == ""
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert int(done.stdout) < 10_000  # KiB


@pytest.mark.long
def test_operation_type_and_bytes_are_read_and_kernels_are_below(
    record_rank: Record, groups: Groups
) -> None:
    def work() -> None:
        for _ in range(3):
            groups.all_reduce(50)
        groups.gpu.deliver()

    recording = record_rank(work)
    (path,) = [path for path in recording.kernels() if path[-1] == KERNEL]
    operator = path.index("record_param_comms(allreduce, f32)")
    assert "c10d::allreduce_" in path[:operator]
    assert recording.kernels()[path] == 3
    assert recording.total("communication_bytes") == 3 * 4096
    assert recording.total("exposed_communication_ns") == 3 * 50 * US


def test_each_collective_has_group_bytes_and_the_duration_of_its_kernel(
    record_rank: Record, groups: Groups
) -> None:
    def work() -> None:
        for us in (50, 70, 90):
            groups.all_reduce(us)
        groups.all_reduce(10, elements=5)
        groups.gpu.deliver(shuffle=3)

    found = section(record_rank(work))
    assert found["groups"] == [["0", [0, 1], 4]]
    assert (found["ended"], found["unmatched"], found["unknown"]) == (4, 0, 0)
    assert found["are_apart"]
    operations = [found["operations"][row[3]] for row in found["rows"]]
    assert operations == ["allreduce_"] * 4
    assert [row[1] for row in found["rows"]] == [0, 1, 2, 3]
    durations = [row[4] for row in found["rows"]]
    assert durations == pytest.approx([50 * US, 70 * US, 90 * US, 10 * US], rel=0.001)
    assert [row[6] for row in found["rows"]] == [4096, 4096, 4096, 20]


def test_groups_that_say_their_names_are_told_apart(record_rank: Record, groups: Groups) -> None:
    def work() -> None:
        groups.all_reduce(5)
        for _ in range(3):
            groups.all_reduce(5, group="unheard")
        groups.gpu.deliver()

    found = section(record_rank(work))
    assert found["groups"] == [["0", [0, 1], 1], ["", [], 3]]


def test_what_computing_hides_is_not_exposed(record_rank: Record, groups: Groups) -> None:
    def work() -> None:
        groups.gpu.launch("gemm", us=40_000, stream=1)
        groups.all_reduce(60_000)
        groups.gpu.deliver()

    recording = record_rank(work)
    exposed = recording.total("exposed_communication_ns")
    assert 20_000 * US <= exposed < 59_000 * US  # the kernel begins a little after the other
    ((*_, of_row),) = section(recording)["rows"]
    assert of_row == pytest.approx(exposed, rel=0.05)


def test_a_call_of_several_kernels_is_one_collective(record_rank: Record, groups: Groups) -> None:
    def work() -> None:
        def launch() -> None:
            for _ in range(3):
                groups.gpu.launch(KERNEL, us=20, stream=9)

        groups.call("allreduce_coalesced")(launch)
        groups.gpu.deliver()

    ((*_, duration, _, _, _),) = section(record_rank(work))["rows"]
    assert duration == pytest.approx(60 * US, rel=0.001)


def test_sends_and_waits_are_not_numbered(record_rank: Record, groups: Groups) -> None:
    """A batch of sends is launched when the batch ends, outside of the calls."""

    def work() -> None:
        groups.call("send", elements=100, p2p=True)(lambda: None)
        groups.call("recv", elements=100, p2p=True)(lambda: None)
        groups.gpu.launch("ncclDevKernel_SendRecv", us=30, stream=9)
        groups.call("wait", elements=0)(lambda: None)
        groups.gpu.deliver()

    recording = record_rank(work)
    assert "collectives" not in recording.profile.sections
    assert recording.total("communication_bytes") == 800
    assert recording.total("exposed_communication_ns") == 30 * US
    paths = recording.by_path("communication_bytes")
    assert {path[-1] for path in paths} == {
        "record_param_comms(send, f32)",
        "record_param_comms(recv, f32)",
    }


@pytest.mark.parametrize("has_other", [False, True])
def test_where_torch_says_nothing_the_operator_alone_is_recorded(
    record_rank: Record, groups: Groups, *, has_other: bool
) -> None:
    def work() -> None:
        launch = ctypes.CFUNCTYPE(None)(lambda: groups.gpu.launch(KERNEL, us=30, stream=9))
        groups.library.silent_call(int(has_other), launch)
        groups.gpu.deliver()

    recording = record_rank(work)
    assert "collectives" not in recording.profile.sections
    ((path, count),) = recording.kernels().items()
    assert "record_param_comms" in path
    assert count == 1


def test_the_rank_that_came_last_is_named(
    record_rank: Callable[..., Recording], groups: Groups
) -> None:
    """Rank 1 computes 4 ms longer before each collective; rank 0 waits for it inside the kernel."""

    def work_of(compute_us: float, reduce_us: float) -> Callable[[], None]:
        def work() -> None:
            for _ in range(20):
                groups.gpu.launch("gemm", us=compute_us, stream=9)
                groups.all_reduce(reduce_us)
            groups.gpu.deliver()

        return work

    early = record_rank(work_of(1_000, 5_000), 0)
    late = record_rank(work_of(5_000, 1_000), 1)
    job = merge({"rank0": early.profile, "rank1": late.profile}, unrelated=True)
    found = by_lateness(job)
    assert found is not None
    assert not found.reason
    assert (found.compared, found.collectives) == (20, 20)
    ahead, behind = found.rows
    assert ahead.caused_ns == 0
    # The first has no collective before it, so that nothing is known of what delayed the rank.
    assert behind.caused_ns == pytest.approx(19 * 4_000 * US, rel=0.01)
    assert ahead.waiting_ns == pytest.approx(20 * 4_000 * US, rel=0.01)
    (row,) = by_operation(job)
    assert (row.operation, row.calls, row.size_bytes, row.last) == ("allreduce", 20, 4096, 1)
    assert row.transfer_ns == pytest.approx(20 * 1_000 * US, rel=0.01)
    assert row.exposed_share == pytest.approx(1, abs=0.02)
    assert row.bytes_per_s == pytest.approx(4096 / 1e-3, rel=0.01)


def test_work_of_the_host_and_of_a_device_in_one_group(record: Any, groups: Groups) -> None:
    """A back end "cpu:gloo,cuda:nccl": the same ranks exchange tensors of both kinds."""

    def work() -> None:
        for _ in range(3):
            dist.all_reduce(torch.ones(4))
            groups.all_reduce(5)
        dist.all_reduce(torch.ones(4))
        groups.gpu.deliver()

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        found = section(record(work, COLLECTORS))
    finally:
        dist.destroy_process_group()
    assert found["groups"] == [["0", [0], 4], ["0 (device)", [0], 3]]
    assert (found["ended"], found["unmatched"]) == (7, 0)
    assert sorted((row[0], row[1]) for row in found["rows"]) == [
        *((0, number) for number in range(4)),
        *((1, number) for number in range(3)),
    ]


def test_without_a_gpu_collector_no_durations_are_known(record: Any, groups: Groups) -> None:
    recording = record(lambda: groups.all_reduce(5), (PythonFrames, TorchOperators))
    assert "collectives" not in recording.profile.sections
    assert recording.total("communication_bytes") == 4096
    groups.gpu.deliver()
