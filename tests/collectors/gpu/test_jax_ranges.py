"""Kernels of a compiled program under its operations: ranges of XLA's through NVTX, a fake device.

The program is real, but compiled for the CPU; the fake pretends that it runs on a device.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext import _native
from deepcontext.collectors.gpu.nvidia import NvidiaGpu
from deepcontext.collectors.jax.programs import JaxPrograms
from deepcontext.collectors.python.frames import PythonFrames
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.session_manager import SessionManager
from deepcontext.profiler.summaries.jax import programs as jax_programs

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kit import FakeGpu

VARIABLE = "NVTX_INJECTION64_PATH"


@pytest.fixture
def client(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """A copy of NVTX whose ranges are XLA's."""
    monkeypatch.setenv(VARIABLE, str(_native.__file__))
    library = ctypes.CDLL(str(fakes / "libnvtx_client.so"))
    assert library.client_open(b"TSL")
    return library


def _loss(w: Any, x: Any) -> Any:
    return jnp.sum(jnp.tanh(x @ w) ** 2)


@jax.jit
def ranged_step(w: Any, x: Any) -> Any:
    return w - 0.1 * jax.grad(_loss)(w, x)


def _record(work: Callable[[], None]) -> deepcontext.Profile:
    manager = SessionManager()
    manager.start(None, SessionOptions(), [PythonFrames, JaxPrograms, NvidiaGpu])
    try:
        work()
    finally:
        capture = manager.stop()
    return deepcontext.Profile.from_bytes(capture.encode())


class Device:
    """Runs compiled programs on the fake device as XLA does: no Python between call and kernel."""

    def __init__(self, gpu: FakeGpu, client: ctypes.CDLL) -> None:
        self.client = client
        self._launch = gpu._library.fake_launch_many
        self._add = gpu._library.fake_graph_add
        self._replay = gpu._library.fake_graph_launch
        self._function = _native.jax_function("ranged_step", "ranged_step", "", 1)

    def program(self, module: str) -> dict[str, Any]:
        uid, found = 0, None
        while (program := _native.jax_program(uid)) is not None:
            uid, found = uid + 1, program if program["module"] == module else found
        assert found is not None
        return found

    def run(
        self, program: dict[str, Any], *, is_registered: bool = True, graph: int | None = None
    ) -> None:
        """Launch a kernel for each operation, inside its range, in a call of the function.

        With a graph, the kernels become nodes of it.
        """
        title = f"XlaModule:#prefix=jit(f),hlo_module={program['module']},program_id="
        _native.jax_begin_call(ranged_step, self._function)
        self.client.client_push(f"{title}{program['hlo_id']}#".encode(), is_registered)
        for operation in program["operations"]:
            name = operation["name"]
            text = f"Thunk:#name={operation['op_name']},hlo_op={name},unique_hlo_op_id=3#"
            self.client.client_push(text.encode(), is_registered)
            kernel, ns = f"kernel_{name}".encode(), ctypes.c_uint64(10_000)
            if graph is None:
                self._launch(kernel, 7, ns, ctypes.c_uint64(1))
            else:
                self._add(graph, kernel, ns)
            self.client.client_pop()
        self.client.client_pop()
        _native.jax_end_call(ranged_step, False)  # noqa: FBT003  native functions take no names

    def replay(self, executable: int) -> None:
        """Launch a graph in a call of the function."""
        _native.jax_begin_call(ranged_step, self._function)
        self._replay(executable, 7)
        _native.jax_end_call(ranged_step, False)  # noqa: FBT003


def _compile() -> None:
    jax.clear_caches()
    ranged_step(jnp.ones((32, 32)), jnp.ones((32, 32)))


def _kernels(profile: deepcontext.Profile) -> dict[str, int]:
    """Node of each kernel that an operation launched, by its name."""
    own = profile.exclusive("gpu_time_ns")
    nodes = {profile.frame(n).name: n for n in range(len(own)) if own[n]}
    return {name: node for name, node in nodes.items() if name.startswith("kernel_")}


@pytest.mark.parametrize("is_registered", [True, False])
def test_a_kernel_stands_under_the_operation_and_the_lines_it_was_written_on(
    nvidia: FakeGpu, client: ctypes.CDLL, *, is_registered: bool
) -> None:
    device = Device(nvidia, client)
    programs: list[dict[str, Any]] = []

    def work() -> None:
        _compile()
        programs.append(device.program("jit_ranged_step"))
        for _ in range(3):
            device.run(programs[0], is_registered=is_registered)
        nvidia.deliver()

    profile = _record(work)
    kernels = _kernels(profile)
    phases = {"forward": Phase.FORWARD, "backward": Phase.BACKWARD, "none": Phase.OTHER}
    assert len(kernels) == len(programs[0]["operations"]) >= 3
    for operation in programs[0]["operations"]:
        node = kernels[f"kernel_{operation['name']}"]
        assert profile.counts("gpu_time_ns")[node] == 3
        assert Phase(int(profile.tree.phase[node])) is phases[operation["phase"]]
        path = profile.path(node)
        (at,) = [i for i, frame in enumerate(path) if frame.name == "jit(ranged_step)"]
        below = [(f.name, f.line) for f in path[at + 1 : -1] if f.kind is FrameKind.PYTHON]
        assert below == [(function, line) for function, _, line in operation["lines"]]
        assert path[-2].kind is FrameKind.HLO
        assert path[-2].name == operation["name"]
    assert {Phase.FORWARD, Phase.BACKWARD} <= {
        Phase(int(profile.tree.phase[n])) for n in kernels.values()
    }
    function = jax_programs.jitted_functions(profile)[0]
    assert (function.name, function.launches) == ("jit(ranged_step)", 1 + 3)  # one on the CPU
    assert function.device_ns == 3 * len(kernels) * 10_000
    assert jax_programs.device_accounting(profile).on_user_line == function.device_ns
    (report,) = [c for c in profile.trust.collectors if c.name == "jax"]
    assert int(report.details["device_operations"]) == 3 * len(kernels)
    assert int(report.details["device_operations_known"]) == 3 * len(kernels)


def test_a_command_buffer_replays_under_the_operations_that_it_was_recorded_in(
    nvidia: FakeGpu, client: ctypes.CDLL
) -> None:
    device = Device(nvidia, client)

    def work() -> None:
        _compile()
        program = device.program("jit_ranged_step")
        nvidia.capture_begin()
        device.run(program)
        executable = nvidia.instantiate(nvidia.capture_end())
        for _ in range(5):
            device.replay(executable)
        nvidia.deliver()

    _assert_replayed(_record(work), us=5 * 10)


def test_a_command_buffer_that_xla_makes_and_changes_itself(
    nvidia: FakeGpu, client: ctypes.CDLL
) -> None:
    """Without a capture: node by node, and with other parameters before each replay."""
    device = Device(nvidia, client)

    def work() -> None:
        _compile()
        program = device.program("jit_ranged_step")
        graph = nvidia.graph()
        device.run(program, graph=graph)
        executable = nvidia.instantiate(graph)
        for _ in range(5):
            for place, operation in enumerate(program["operations"]):
                nvidia.set_node(executable, place, f"kernel_{operation['name']}", us=20)
            device.replay(executable)
        nvidia.deliver(shuffle=1)

    profile = _record(work)
    _assert_replayed(profile, us=5 * 20)
    (report,) = [c for c in profile.trust.collectors if c.name == "nvidia"]
    figures = {name: int(report.details[name]) for name in ("launches", "answered")}
    assert (report.status, figures) == ("ran", {"launches": 5, "answered": 5})
    assert int(report.details["graph_launched"]) == 0


def _assert_replayed(profile: deepcontext.Profile, us: int) -> None:
    """Each operation's kernel ran five times, under its operation below the replay in the call."""
    kernels = _kernels(profile)
    assert len(kernels) >= 3
    times = profile.exclusive("gpu_time_ns")
    for name, node in kernels.items():
        assert profile.counts("gpu_time_ns")[node] == 5
        assert times[node] == us * 1000
        names = [frame.name for frame in profile.path(node)]
        replay = names.index("graph replay")
        assert "jit(ranged_step)" in names[:replay]
        assert names[-2] == name.removeprefix("kernel_")
        assert any(
            f.kind is FrameKind.PYTHON and f.file == __file__ for f in profile.path(node)[replay:]
        )


def test_a_program_that_is_not_known_keeps_the_names_of_its_operations(
    nvidia: FakeGpu, client: ctypes.CDLL
) -> None:
    device = Device(nvidia, client)
    program = {
        "module": "jit_gone",
        "hlo_id": 9,
        "operations": [{"name": "fusion.1", "op_name": ""}],
    }

    def work() -> None:
        jnp.ones(3)
        device.run(program)
        nvidia.deliver()

    profile = _record(work)
    path = profile.path(_kernels(profile)["kernel_fusion.1"])
    assert [frame.name for frame in path[-2:]] == ["fusion.1", "kernel_fusion.1"]
    (report,) = [c for c in profile.trust.collectors if c.name == "jax"]
    assert "1 of 1 operations on the GPU belong to unknown programs" in report.reason


def test_ranges_of_others_and_odd_ones_do_no_harm(nvidia: FakeGpu, client: ctypes.CDLL) -> None:
    def work() -> None:
        jnp.ones(3)
        client.client_pop()
        for text in (b"", b"Thunk:#", b"XlaModule:#program_id=x#", b"Thunk:#hlo_op=", b"\xff\xfe"):
            client.client_push(text, 1)
        for _ in range(300):
            client.client_push(b"Thunk:#hlo_op=deep#", 0)
        for _ in range(310):
            client.client_pop()
        assert client.client_open(b"another")
        client.client_push(b"Thunk:#hlo_op=not_ours#", 1)
        nvidia.launch("kernel_plain", us=10)
        client.client_pop()
        client.client_open(b"TSL")
        nvidia.deliver()

    profile = _record(work)
    names = [frame.name for frame in profile.path(_kernels(profile)["kernel_plain"])]
    assert "not_ours" not in names
    assert "deep" not in names


def test_the_library_is_offered_only_until_it_was_taken(nvidia: FakeGpu, fakes: Path) -> None:
    program = f"""
import ctypes, os, sys
import deepcontext
deepcontext.start({str(fakes / "out.dcprof")!r})
assert {VARIABLE!r} not in os.environ
import jax
assert os.environ[{VARIABLE!r}] == deepcontext._native.__file__
client = ctypes.CDLL({str(fakes / "libnvtx_client.so")!r})
assert client.client_open(b"TSL")
jax.jit(lambda x: x + 1)(1.0)
assert {VARIABLE!r} not in os.environ, "a child of the program would see it"
deepcontext.stop()
os.environ[{VARIABLE!r}] = "/tool/of/another.so"
deepcontext.start()
assert os.environ[{VARIABLE!r}] == "/tool/of/another.so"
deepcontext.stop()
assert os.environ[{VARIABLE!r}] == "/tool/of/another.so"
"""
    environment = {**os.environ, **nvidia.environment(), "JAX_PLATFORMS": "cpu"}
    environment.pop(VARIABLE, None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
