"""Kernels of torch.compile: which node belongs to which launch, and its description."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.analyzers.finding import Finding, Severity
from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.summaries.compiled_kernels import compiled_kernels, fused_at
from deepcontext.ui.compiled_kernels import lines_text
from deepcontext.ui.finding_texts import texts_of

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

ROOT = Frame(FrameKind.ROOT, "")
USER = "/home/me/net.py"
GENERATED = "/tmp/torchinductor_me/ab/cab.py"
LIBRARY = "/usr/lib/python3.11/site-packages/torch/_inductor/runtime/triton_heuristics.py"


def _line(line: int, file: str = GENERATED) -> Frame:
    return Frame(FrameKind.PYTHON, "call", file, line)


def _kernel(name: str, kind: FrameKind = FrameKind.OPERATOR) -> Frame:
    return Frame(kind, name)


def _launch(line: int, source: list[int], *, is_complete: bool = True) -> dict[str, Any]:
    return {
        "file": GENERATED,
        "line": line,
        "operators": ["aten.sin", "aten.mul"],
        "source": [[USER, each, "forward"] for each in source] + [[LIBRARY, 1, "linear"]],
        "is_complete": is_complete,
    }


@pytest.fixture
def with_kernels(make_profile: Any) -> Any:
    def make(
        frames: list[Frame], parents: list[int], times: dict[int, int], kernels: dict[str, Any]
    ) -> Profile:
        profile = make_profile([0, *parents], [ROOT, *frames], host_time_ns=times)
        section = json.dumps({"version": 1, "kernels": kernels}).encode()
        profile = replace(profile, sections={"torch_compile": section})
        found: Profile = replace(profile, run=replace(profile.run, cwd="/home/me"))
        return found

    return make


def test_a_launch_is_found_by_its_line_whatever_calls_lie_between(with_kernels: Any) -> None:
    frames = [
        _line(10),
        _line(3, LIBRARY),
        _kernel("triton_poi_fused_0", FrameKind.KERNEL),
        _line(20),
        _kernel("triton_poi_fused_0", FrameKind.KERNEL),
    ]
    kernels = {"triton_poi_fused_0": [_launch(10, [7]), _launch(20, [9, 8])]}
    profile = with_kernels(frames, [0, 1, 2, 0, 4], {3: 5, 5: 11}, kernels)
    found = compiled_kernels(profile)
    assert [(each.time_ns, [line.line for line in each.lines]) for each in found] == [
        (11, [9, 8]),
        (5, [7]),
    ]
    (kernel,) = fused_at(profile, [3])
    assert lines_text(kernel, "/home/me") == "net.py:7"
    assert fused_at(profile, [1, 2, 4]) == ()


def test_a_replayed_launch_is_found_by_its_name_if_the_name_is_unique(with_kernels: Any) -> None:
    frames = [
        _line(99),
        _kernel("graph_0_cpp_fused_sin_0"),
        _kernel("triton_poi_fused_0", FrameKind.KERNEL),
    ]
    kernels = {
        "cpp_fused_sin_0": [_launch(10, [7], is_complete=False)],
        "triton_poi_fused_0": [_launch(10, [7]), _launch(20, [8])],
    }
    profile = with_kernels(frames, [0, 1, 1], {2: 5, 3: 11}, kernels)
    assert [(each.name, each.time_ns) for each in compiled_kernels(profile)] == [
        ("cpp_fused_sin_0", 5),
        ("triton_poi_fused_0", 0),
        ("triton_poi_fused_0", 0),
    ]
    assert fused_at(profile, [3]) == ()
    (kernel,) = fused_at(profile, [2, 2])
    assert lines_text(kernel, "/home/me") == "net.py:7 and others"


def test_an_operator_that_generated_code_calls_is_no_compiled_kernel(
    with_kernels: Any,
) -> None:
    frames = [_line(10), _kernel("aten::mm")]
    profile = with_kernels(frames, [0, 1], {2: 5}, {"extern_kernels.mm": [_launch(10, [7])]})
    assert compiled_kernels(profile) == ()


def test_a_kernel_of_a_librarys_model_names_the_librarys_lines(with_kernels: Any) -> None:
    frames = [_line(10), _kernel("triton_poi_fused_0", FrameKind.KERNEL)]
    profile = with_kernels(frames, [0, 1], {2: 5}, {"triton_poi_fused_0": [_launch(10, [])]})
    (kernel,) = compiled_kernels(profile)
    assert [str(line) for line in kernel.lines] == [f"linear {LIBRARY}:1"]


def test_a_finding_about_a_kernel_says_what_was_fused_into_it(with_kernels: Any) -> None:
    frames = [_line(10), _kernel("triton_poi_fused_0")]
    profile = with_kernels(frames, [0, 1], {2: 5}, {"triton_poi_fused_0": [_launch(10, [8, 7])]})
    finding = Finding(
        id="hotspot",
        severity=Severity.INFO,
        title="one kernel takes much",
        nodes=(2,),
        evidence={},
        gain=None,
        advice="look",
        misleads="never",
    )
    assert ("computes", "sin, mul of net.py:7, 8") in texts_of(profile, finding)
    elsewhere = dict(texts_of(profile, replace(finding, nodes=(1,))))
    assert "computes" not in elsewhere


def test_a_profile_without_the_section_has_none(make_profile: Any) -> None:
    profile = make_profile([0, 0], [ROOT, _kernel("aten::mm")], host_time_ns={1: 5})
    assert compiled_kernels(profile) == ()
    assert fused_at(profile, [1]) == ()


def test_a_damaged_section_is_refused(make_profile: Any) -> None:
    profile = make_profile([0], [ROOT], host_time_ns={0: 5})
    profile = replace(profile, sections={"torch_compile": b"[]"})
    with pytest.raises(ProfileDataError, match="torch_compile"):
        compiled_kernels(profile)
