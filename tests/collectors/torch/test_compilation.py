"""What the compiler leaves behind is read as far as it is there."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.collectors.torch.compilation import SECTION, TorchCompile
from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model import compiled_kernels
from deepcontext.profiler.model.compiled_kernels import CompiledKernels

if TYPE_CHECKING:
    from pathlib import Path

# As torch 2.13 writes it, with INDUCTOR_PROVENANCE=1 (shortened).
WRAPPER = '''\
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()

cpp_fused_mul_relu_sin_0 = async_compile.cpp_pybinding([], r"""
# Topologically Sorted Source Nodes: [not], Original ATen: [aten.this]
""")
triton_poi_fused_add_1 = async_compile.triton('triton_poi_fused_add_1', """
""", device_str='cuda')

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (8, 8), (8, 1), 'input')
        # [Provenance debug handles] cpp_fused_mul_relu_sin_0:1
        cpp_fused_mul_relu_sin_0(arg0_1, arg1_1, buf0)
        # Topologically Sorted Source Nodes: [e], Original ATen: [aten.expand, aten.mm]
        # [Provenance debug handles] extern_kernels.mm:2
        extern_kernels.mm(buf0, arg1_1, out=buf1)
        # Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]
        stream0 = get_raw_stream(0)
        triton_poi_fused_add_1.run(buf1, 64, stream=stream0)
        # Topologically Sorted Source Nodes: [], Original ATen: []
        buf5 = torch.ops.aten.sort.default(buf1)
        return (buf5, )
'''
# (first line, stack trace) as PyCodeCache has them, in two columns.
LINE_MAP = [
    (14, 18, 20),
    (
        '  File "net.py", line 4, in forward\n    d = relu(c)\n',
        '  File "main.py", line 9, in <module>\n  File "net.py", line 5, in forward\n    e = d @ w\n',
        '  File "net.py", line 6, in forward\n    f = e + 1\n',
    ),
]
TRACES = {
    "cpp_fused_mul_relu_sin_0:1": [
        '  File "net.py", line 4, in forward\n    d = relu(c)\n',
        '  File "net.py", line 3, in forward\n    c = sin(a) * b\n',
    ]
}


class CompiledFxGraph:
    def __init__(self, key: str) -> None:
        self.cache_key = key
        self.inductor_provenance_stack_traces_str = json.dumps(TRACES)


@pytest.fixture
def torch_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Set the private modules of torch up; `level` says whether provenance is on."""
    wrapper = tmp_path / "ckey.py"
    wrapper.write_text(WRAPPER)
    modules: dict[str, Any] = {
        "codecache": SimpleNamespace(
            PyCodeCache=SimpleNamespace(linemaps={str(wrapper): LINE_MAP})
        ),
        "config": SimpleNamespace(trace=SimpleNamespace(provenance_tracking_level=1)),
        "output_code": SimpleNamespace(CompiledFxGraph=CompiledFxGraph),
        "graph": CompiledFxGraph("ckey"),
        "wrapper": wrapper,
    }
    for name in ("codecache", "config", "output_code"):
        monkeypatch.setitem(sys.modules, f"torch._inductor.{name}", modules[name])
    return modules


def collected() -> tuple[dict[str, Any], Any]:
    collector = TorchCompile()
    collector.settle()
    section = collector.sections().get(SECTION, b'{"kernels": {}}')
    return json.loads(section)["kernels"], collector.outcome()


def test_every_launch_with_its_lines(torch_modules: dict[str, Any]) -> None:
    kernels, outcome = collected()
    file = str(torch_modules["wrapper"])
    assert kernels == {
        "cpp_fused_mul_relu_sin_0": [
            {
                "file": file,
                "line": 16,
                "operators": [],
                "source": [["net.py", 4, "forward"], ["net.py", 3, "forward"]],
                "is_complete": True,
            }
        ],
        "extern_kernels.mm": [
            {
                "file": file,
                "line": 19,
                "operators": ["aten.expand", "aten.mm"],
                "source": [["main.py", 9, "<module>"], ["net.py", 5, "forward"]],
                "is_complete": False,
            }
        ],
        "triton_poi_fused_add_1": [
            {
                "file": file,
                "line": 22,
                "operators": ["aten.add"],
                "source": [["net.py", 6, "forward"]],
                "is_complete": False,
            }
        ],
        "torch.ops.aten.sort.default": [
            {
                "file": file,
                "line": 24,
                "operators": [],
                "source": [["net.py", 6, "forward"]],
                "is_complete": False,
            }
        ],
    }
    assert outcome.status == Status.RAN
    assert outcome.details == {"graphs": 1, "kernel_launches": 4, "launches_with_all_lines": 1}


def test_cpp_kernels_have_no_lines_without_provenance(torch_modules: dict[str, Any]) -> None:
    torch_modules["config"].trace.provenance_tracking_level = 0
    kernels, outcome = collected()
    assert kernels["cpp_fused_mul_relu_sin_0"][0]["source"] == []
    assert kernels["extern_kernels.mm"][0]["source"][-1] == ["net.py", 5, "forward"]
    assert outcome.details["launches_with_all_lines"] == 0


@pytest.mark.parametrize(
    ("module", "attribute", "launches"),
    [
        ("torch._inductor.config", "trace", 4),
        ("torch._inductor.output_code", "CompiledFxGraph", 4),
        ("torch._inductor.codecache", "PyCodeCache", 0),
    ],
)
def test_a_name_that_torch_no_longer_has(
    torch_modules: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    attribute: str,
    launches: int,
) -> None:
    monkeypatch.delattr(sys.modules[module], attribute)
    kernels, outcome = collected()
    assert sum(map(len, kernels.values())) == launches
    assert outcome.status == (Status.RAN if launches else Status.DEGRADED)


@pytest.mark.parametrize("attribute", ["cache_key", "inductor_provenance_stack_traces_str"])
def test_a_graph_that_lacks_a_field(torch_modules: dict[str, Any], attribute: str) -> None:
    delattr(torch_modules["graph"], attribute)
    _, outcome = collected()
    assert outcome.details["kernel_launches"] == 4
    assert outcome.details["launches_with_all_lines"] == 0


@pytest.mark.parametrize("line_map", [[], [(1,)], None, [3, 4], [("x",), ("y",)]])
def test_a_line_map_of_another_shape(torch_modules: dict[str, Any], line_map: Any) -> None:
    line_maps = torch_modules["codecache"].PyCodeCache.linemaps
    line_maps[str(torch_modules["wrapper"])] = line_map
    kernels, _ = collected()
    assert kernels["extern_kernels.mm"][0]["source"] == []
    assert kernels["extern_kernels.mm"][0]["operators"] == ["aten.expand", "aten.mm"]


@pytest.mark.parametrize("text", [None, "", "[]", "{", 7])
def test_provenance_that_is_no_json_object(torch_modules: dict[str, Any], text: Any) -> None:
    torch_modules["graph"].inductor_provenance_stack_traces_str = text
    _, outcome = collected()
    assert outcome.details["launches_with_all_lines"] == 0


def test_a_cache_that_was_cleaned(torch_modules: dict[str, Any]) -> None:
    torch_modules["wrapper"].unlink()
    kernels, outcome = collected()
    assert kernels == {}
    assert outcome.status == Status.RAN


def test_a_program_that_compiled_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._inductor.codecache", raising=False)
    kernels, outcome = collected()
    assert kernels == {}
    assert outcome.status == Status.OFF


def test_the_reader_finds_launches_by_place_and_by_name(torch_modules: dict[str, Any]) -> None:
    collector = TorchCompile()
    collector.settle()
    kernels = CompiledKernels.from_sections(collector.sections())
    launch = next(each for each in kernels.launches if each.line == 16)
    assert launch.file == str(torch_modules["wrapper"])
    assert launch is not None
    assert launch.kernel == "cpp_fused_mul_relu_sin_0"
    assert [str(frame) for frame in launch.source] == ["forward net.py:4", "forward net.py:3"]
    assert launch.is_complete
    assert kernels.named("graph_0_cpp_fused_mul_relu_sin_0") == (launch,)
    assert kernels.named("triton_poi_fused_add_1")[0].operators == ("aten.add",)
    assert CompiledKernels.from_sections({}).launches == ()


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"{}", b'{"version": 1}', b'{"version": 1, "kernels": {"k": [{}]}}', b"\xff"],
)
def test_a_damaged_section_is_refused(payload: bytes) -> None:
    with pytest.raises(ProfileDataError, match=r"cannot read section 'torch_compile': \w+"):
        CompiledKernels.from_sections({SECTION: payload})


def test_a_newer_section_is_refused() -> None:
    with pytest.raises(ProfileDataError, match="version 2, this build reads 1; upgrade"):
        CompiledKernels.from_sections({SECTION: b'{"version": 2, "kernels": {}}'})


def test_writer_and_reader_name_the_section_alike() -> None:
    assert compiled_kernels.SECTION == SECTION
