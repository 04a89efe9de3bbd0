"""Native frames at PyTorch's operators: Python > operator > native, forward, backward, any thread."""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from deepcontext import _native
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.views.layers import LAYER_OF_KIND, Layer
from tests.ui.paths import Paths

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
import native_chain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.torch.conftest import Record, Recording, Script

pytestmark = pytest.mark.skipif(
    not _native.native_is_supported(), reason="native frames need x86-64 or aarch64"
)
CHAIN = "libnative_chain"
TORCH = ("libtorch", CHAIN)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native_chain.build(tmp_path_factory.mktemp("chain"))


class Shim:
    """PyTorch's C interface, so that C++ calls an operator with no Python between."""

    def __init__(self) -> None:
        self._torch = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        make = getattr(self._torch, "aoti_torch_empty_strided", None)
        if make is None:
            pytest.skip(f"torch {torch.__version__} has no C interface")
        self.tensor = ctypes.c_void_p()
        size, stride = (ctypes.c_int64 * 1)(4), (ctypes.c_int64 * 1)(1)
        float32 = self._torch.aoti_torch_dtype_float32()
        cpu = self._torch.aoti_torch_device_type_cpu()
        assert make(1, size, stride, float32, cpu, 0, ctypes.byref(self.tensor)) == 0
        self.zero = native_chain.address(self._torch.aoti_torch_zero_)


def paths(recording: Recording, operator: str, *files: str) -> list[list[str]]:
    """Paths of an operator below the recorded function."""
    found = []
    for node in recording.operators(operator):
        path = native_chain.path(recording.profile, node, *files)
        found.append(path[path.index("python _call") + 1 :] if "python _call" in path else path)
    return found


def test_native_frames_lead_from_python_to_the_operator(record: Record, library: Path) -> None:
    chain, shim = native_chain.load(library), Shim()

    def workload() -> None:
        chain.chain_outer(shim.zero, shim.tensor, 0, 0)

    recording = record(workload, native=True)
    (path,) = paths(recording, "aten::zero_", *TORCH)
    assert path == [
        "python workload",
        *native_chain.native(native_chain.OUTER),
        "native aoti_torch_zero_",
        "native at::_ops::zero_::call",
        "operator aten::zero_",
    ]
    assert recording.count(recording.operators("aten::zero_")[0]) == 1


def test_operators_on_a_thread_without_python(record: Record, library: Path) -> None:
    chain, shim = native_chain.load(library), Shim()

    def workload() -> None:
        chain.chain_thread(shim.zero, shim.tensor, 0, 0)

    recording = record(workload, native=True)
    (path,) = paths(recording, "aten::zero_", *TORCH)
    assert path[0].startswith("thread ")
    # std::thread's own call of the lambda may be inlined into the thread's first function.
    at = path.index("native chain_outer")
    assert path[at:] == [
        *native_chain.native(native_chain.OUTER),
        "native aoti_torch_zero_",
        "native at::_ops::zero_::call",
        "operator aten::zero_",
    ]
    (node,) = recording.operators("aten::zero_")
    names = [recording.frame(at).name for at in recording.profile.tree.path(node)]
    assert not {"clone", "clone3", "start_thread"} & set(names)


def test_native_frames_between_an_operator_and_one_inside_it(record: Record) -> None:
    left, right = torch.ones(4, 4), torch.ones(4, 4)

    def workload() -> None:
        torch.nn.functional.linear(left, right)

    recording = record(workload, native=True)
    # What runs inside differs between versions of torch; the order of the layers does not.
    (path,) = paths(recording, "aten::linear")
    names = [name for name in path if "native" in name]
    assert names[0] == "native torch.linear"
    assert names[-1] == "native at::_ops::linear::call"
    for node in range(len(recording.profile.tree)):
        inside = native_chain.path(recording.profile, node)
        if "operator aten::linear" in inside and inside[-1].startswith("operator aten::t"):
            at = inside.index("operator aten::linear")
            assert inside[at + 1] == "native at::native::linear"


class Square(torch.autograd.Function):
    """Its backward is Python that C++ calls."""

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


def test_backward_is_in_the_same_order(record: Record) -> None:
    def workload() -> None:
        Square.apply(torch.ones(3, requires_grad=True)).sum().backward()

    recording = record(workload, native=True)
    found = [
        path
        for path in paths(recording, "aten::mul")
        if "operator SquareBackward" in path  # below the forward that made it
    ]
    assert found
    for path in found:
        start = path.index("operator SquareBackward")
        assert "operator Square" in path[:start]
        kinds = [frame.partition(" ")[0] for frame in path[start:]]
        backward = path.index("python Square.backward") - start
        # operator > native (the engine's call of Python) > Python > native > operator
        assert "native" in kinds[1:backward]
        assert set(kinds[backward + 1 : -1]) == {"native"}
        assert kinds[-1] == "operator"


def test_a_leaf_of_the_backward_shows_who_ran_it(record: Record) -> None:
    def workload() -> None:
        (torch.ones(3, requires_grad=True) * 2).sum().backward()

    recording = record(workload, native=True)
    (path,) = paths(recording, "torch::autograd::AccumulateGrad")
    native = [frame.removeprefix("native ") for frame in path if frame.startswith("native ")]
    assert "torch::autograd::Engine::evaluate_function" in native
    assert path.index("python backward") < path.index(
        "native torch::autograd::Engine::evaluate_function"
    )


def test_times_and_calls_are_those_without_the_option(record: Record) -> None:
    def workload() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()

    def without_native(recording: Recording) -> dict[tuple[str, ...], int]:
        counted: dict[tuple[str, ...], int] = {}
        for node in recording.operators():
            path = native_chain.path(recording.profile, node, "no such file")
            counted[tuple(path)] = counted.get(tuple(path), 0) + recording.count(node)
        return counted

    plain, native = record(workload), record(workload, native=True)
    assert without_native(native) == without_native(plain)
    assert native.counters["native_walks"] >= native.counters["operator_events"] // 2
    for reason in ("without_table", "off_stack", "too_deep"):
        assert native.counters[f"native_walks_ended_{reason}"] == 0
    assert "native_walks" not in plain.counters


def test_the_dispatchers_plumbing_is_not_shown(record: Record) -> None:
    recording = record(lambda: torch.ones(3) + torch.ones(3), native=True)
    names = {frame.name for frame in recording.profile.frames if frame.kind is FrameKind.NATIVE}
    assert "at::_ops::add_Tensor::call" in names
    assert not [name for name in names if "Dispatcher" in name or "wrap_kernel_functor" in name]
    assert not [name for name in names if "RecordFunction" in name]


def test_the_page_s_layer_switch_hides_them_and_keeps_their_cost(record: Record) -> None:
    recording = record(lambda: torch.mm(torch.ones(4, 4), torch.ones(4, 4)), native=True)

    def shown(hidden: str) -> tuple[set[Layer], int]:
        view = Paths(recording.profile, {"hidden": hidden})
        layers = {LAYER_OF_KIND[path[-1][0]] for path in view.first if path}
        return layers, sum(view.exclusive("host_time_ns").values())

    with_native, without = shown(""), shown("native")
    assert with_native[0] - without[0] == {Layer.NATIVE}
    assert with_native[1] == without[1] > 0


def test_many_threads(record: Record, library: Path) -> None:
    chain, shim = native_chain.load(library), Shim()
    x = torch.ones(2, 2)
    start = threading.Barrier(50)

    def work() -> None:
        start.wait()
        for _ in range(20):
            chain.chain_outer(shim.zero, shim.tensor, 0, 0)
            torch.mm(x, x)

    def workload() -> None:
        threads = [threading.Thread(target=work) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    recording = record(workload, native=True)
    assert recording.calls("aten::zero_") == recording.calls("aten::mm") == 50 * 20
    for path in paths(recording, "aten::zero_", CHAIN):
        assert path[-6:] == [
            "python work",
            *native_chain.native(native_chain.OUTER),
            "operator aten::zero_",
        ]


@pytest.mark.long
def test_a_program_of_threads_recursion_generators_and_workers(script: Script) -> None:
    script.run("""
        import os
        import sys
        import threading
        import torch
        from torch.utils.data import DataLoader

        import deepcontext

        sys.setrecursionlimit(5000)

        class Nested(torch.nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.inner = Nested(depth - 1) if depth else torch.nn.Identity()

            def forward(self, x):
                return self.inner(x) + 1

        def numbers(x):
            for _ in range(3):
                x = x * 2
                yield x

        def down(depth, x):
            return down(depth - 1, x) if depth else sum(numbers(x))

        model = Nested(60)

        def work():
            x = torch.ones(2, requires_grad=True)
            (model(x) + down(1500, x)).sum().backward()

        deepcontext.start("out.dcprof", native=True, snapshot_interval=0.05)
        threads = [threading.Thread(target=work) for _ in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        work()
        child = os.fork()
        if not child:
            torch.ones(3) + 1
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for batch in DataLoader(
            torch.arange(8.0), batch_size=2, num_workers=2, multiprocessing_context="fork"
        ):
            batch + 1
        deepcontext.stop()
    """)
    recording = script.recording()
    assert recording.calls("aten::mul") >= 201 * 3
    assert recording.counters["native_frames"] > 201 * 60
    assert recording.counters["native_walks_ended_without_table"] == 0


def test_a_call_into_c_from_each_line_is_told_apart(record: Record, library: Path) -> None:
    chain, shim = native_chain.load(library), Shim()

    def call() -> Callable[[], None]:
        return chain.chain_outer(shim.zero, shim.tensor, 0, 0)

    def workload() -> None:
        call()
        call()

    recording = record(workload, native=True)
    nodes = recording.operators("aten::zero_")
    assert [recording.count(node) for node in nodes] == [1, 1]
