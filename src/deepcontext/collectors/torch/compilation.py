"""Where the kernels of `torch.compile` come from: operators and Python lines of each launch.

When the profile is written, reads what inductor left behind: the generated wrapper files, the map
from their lines to the traced program and, if the program asked for it, kernel provenance. Changes
nothing and compiles nothing (docs/decisions/0005-inductor-provenance.md). Every name used here is
private to torch: a missing name makes the result less complete, never an error.

Section `torch_compile`, JSON:

    version    1
    kernels    object: kernel name -> launches, each an object:
        file, line   where the generated wrapper launches it (1-based)
        operators    ATen operators fused into the kernel, ["aten.sin", ...]; empty where not known
        source       Python frames of these operators, [[file, line, function], ...], the outermost
                     frame of each operator first; empty where not known
        is_complete  whether `source` has the lines of all the operators, or of one only
"""

from __future__ import annotations

import bisect
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from deepcontext import _native
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.options import SessionOptions

SECTION = "torch_compile"
_VERSION = 1

_COMMENT = re.compile(r"#.*Original ATen: \[(.*?)\]")
_HANDLE = re.compile(r"# \[Provenance debug handles\] (.+)")
_DEFINITION = re.compile(r"(\w+) = async_compile\.")
_CALL = re.compile(r"\s+(?:[\w, ]+ = )?([A-Za-z_][\w.]*)\(")
_STREAM = re.compile(r"\s+stream\d+ = ")
# Kernels that are not generated: ATen operators called by name.
_EXTERNAL = ("extern_kernels.", "torch.ops.", "aten.")
_FRAME = re.compile(r'File "(.+)", line (\d+), in (.+)')


class _Launch(TypedDict):
    file: str
    line: int
    operators: list[str]
    source: list[tuple[str, int, str]]
    is_complete: bool


class TorchCompile:
    """Says which Python lines a compiled kernel computes."""

    name = "torch.compile"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = ()

    def __init__(self) -> None:
        self._files: dict[
            str, list[tuple[str, _Launch]]
        ] = {}  # never change: named by their content

    def probe(self) -> Availability:
        """Say that the collector can always run."""
        return Availability(available=True, reason="reads what the compiler leaves behind")

    def start(self, options: SessionOptions) -> None:
        """Nothing to arrange."""

    def stop(self) -> None:
        """Nothing was changed."""

    def settle(self) -> None:
        """Read the files of graphs compiled since the last time."""
        line_maps = _line_maps()
        traces = _provenance() if set(line_maps).difference(self._files) else {}
        for path, line_map in line_maps.items():
            if path not in self._files:
                self._files[path] = list(_launches(path, line_map, traces.get(Path(path).stem, {})))

    def outcome(self) -> Outcome:
        """Say how much is known about the kernels."""
        if "torch._inductor.codecache" not in sys.modules:
            return Outcome(Status.OFF, "the program compiled nothing")
        if _code_cache() is None:
            return Outcome(Status.DEGRADED, "this torch keeps no map of its generated code")
        launches = [launch for found in self._files.values() for _, launch in found]
        details = {
            "graphs": len(self._files),
            "kernel_launches": len(launches),
            "launches_with_all_lines": sum(launch["is_complete"] for launch in launches),
        }
        return Outcome(Status.RAN, "", details)

    def sections(self) -> Mapping[str, bytes]:
        """Return the launches, by kernel."""
        kernels: dict[str, list[_Launch]] = {}
        for found in self._files.values():
            for kernel, launch in found:
                kernels.setdefault(kernel, []).append(launch)
        if not kernels:
            return {}
        return {SECTION: json.dumps({"version": _VERSION, "kernels": kernels}).encode()}


def _code_cache() -> dict[str, Any] | None:
    module = sys.modules.get("torch._inductor.codecache")
    line_maps = getattr(getattr(module, "PyCodeCache", None), "linemaps", None)
    return line_maps if isinstance(line_maps, dict) else None


def _line_maps() -> dict[str, list[tuple[int, str]]]:
    """Return (first line, stack trace of an operator) of each generated file, by its path."""
    found = {}
    for path, columns in list((_code_cache() or {}).items()):
        try:
            lines, traces = columns or ((), ())
            found[path] = [(int(at), str(trace or "")) for at, trace in zip(lines, traces)]  # noqa: B905
        except (TypeError, ValueError):  # another shape than the one known
            found[path] = []
    return found


def _provenance() -> dict[str, dict[str, list[str]]]:
    """Return stack traces by debug handle, by the key of their graph, if torch kept them."""
    config = getattr(sys.modules.get("torch._inductor.config"), "trace", None)
    if not getattr(config, "provenance_tracking_level", 0):
        return {}
    graph_type = getattr(sys.modules.get("torch._inductor.output_code"), "CompiledFxGraph", None)
    found: dict[str, dict[str, list[str]]] = {}
    for graph in _native.objects_of(graph_type) if isinstance(graph_type, type) else ():
        text = getattr(graph, "inductor_provenance_stack_traces_str", None)
        found[str(getattr(graph, "cache_key", ""))] = _json_object(text)
    return found


def _json_object(text: object) -> dict[str, list[str]]:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def _launches(  # noqa: C901  one pass over the lines of a generated file
    path: str, line_map: Sequence[tuple[int, str]], traces: Mapping[str, list[str]]
) -> Iterator[tuple[str, _Launch]]:
    """Yield kernel and launch for every call of a kernel in a generated file."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # the cache was cleared
        return
    defined = {match[1] for line in lines if (match := _DEFINITION.match(line))}
    operators: list[str] = []
    handle = ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            if match := _COMMENT.search(line):
                operators = match[1].split(", ") if match[1] else []
            elif match := _HANDLE.search(line):
                handle = match[1].strip()
            continue
        if _STREAM.match(line):  # between a Triton kernel and its comments
            continue
        call = _CALL.match(line)
        kernel = call[1].removesuffix(".run") if call else ""
        if kernel in defined or kernel.startswith(_EXTERNAL):
            stacks = traces.get(handle, [])
            if not stacks and not kernel.startswith("cpp_"):
                # C++ kernels are written later than the operators around them, which the map names.
                stacks = _mapped(line_map, number)
            yield (
                kernel,
                _Launch(
                    file=path,
                    line=number,
                    operators=operators,
                    source=_frames(stacks),
                    is_complete=handle in traces,
                ),
            )
        operators, handle = [], ""


def _mapped(line_map: Sequence[tuple[int, str]], number: int) -> list[str]:
    position = bisect.bisect_right(line_map, number, key=lambda entry: entry[0])
    return [line_map[position - 1][1]] if position else []


def _frames(stacks: Sequence[str]) -> list[tuple[str, int, str]]:
    frames = [
        (file, int(line), function)
        for stack in stacks
        for file, line, function in _FRAME.findall(str(stack))
    ]
    return list(dict.fromkeys(frames))
