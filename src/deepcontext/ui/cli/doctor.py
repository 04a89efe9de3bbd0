"""`deepcontext doctor`: what can be measured on this machine, and why the rest cannot.

Only inspects, and changes nothing, unless `--measure` asks for the machine's peaks. Frameworks are named by
their installed version without being imported, unless a collector's own probe imports one.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext import native_core
from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format import peaks
from deepcontext.profiler.recording.options import OPTIONS
from deepcontext.ui.cli.command import Parser
from deepcontext.ui.cli.session_options import word_of

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

PACKAGES: Final = ("torch", "jax", "numpy")
GPU_LIBRARIES: Final = (
    ("NVIDIA driver", ("libcuda.so.1",)),
    ("CUPTI", ("libcupti.so.13", "libcupti.so.12", "libcupti.so")),
    ("AMD HIP", ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so")),
    ("rocprofiler-sdk", ("librocprofiler-sdk.so.1", "librocprofiler-sdk.so")),
    ("roctracer", ("libroctracer64.so.4", "libroctracer64.so")),
)
_PARANOID_FILE: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_CPU_FILE: Final = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check.

    Attributes:
        group: ``versions``, ``core``, ``collectors``, ``machine``, ``peaks`` or ``gpu libraries``.
        name: what was checked.
        is_available: whether the item is present and usable; None for plain information.
        detail: version, location or value, or the reason why the item is not available.
    """

    group: str
    name: str
    is_available: bool | None
    detail: str


def make_parser() -> Parser:
    """Return the parser of the words after the command's name."""
    parser = Parser(
        "deepcontext doctor",
        usage="deepcontext doctor [options]",
        description="Print what can be measured on this machine, and why the rest cannot.",
        epilog="""\
examples:
  deepcontext doctor
  deepcontext doctor --json
  deepcontext doctor --measure      what this machine attains at most, for 'of peak' in reports

exit codes:
  0 profiles can be made, 4 the native core cannot be loaded, or peaks cannot be measured""",
    )
    parser.option("--json", action="store_true", help="print one JSON object instead of text")
    parser.option(
        "--measure",
        action="store_true",
        help="measure with torch how much the processors compute and copy a second, and keep the figures in "
        "the cache folder ($XDG_CACHE_HOME, or ~/.cache): takes half a minute, all processors and memory of "
        "twice the largest cache; best on an idle machine",
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    core = check_core()
    if arguments.measure:
        _measure()
    checks = [
        *check_versions(),
        core,
        *_check_collectors(core),
        *check_machine(),
        *check_peaks(),
        *check_gpu(),
    ]
    if arguments.json:
        print(json.dumps({"checks": [asdict(check) for check in checks]}, indent=2))
    else:
        from rich.console import Console  # noqa: PLC0415  only where it is needed

        _render(Console(highlight=False), checks)
    return 0 if core.is_available else EnvironmentProblem.exit_code


def check_versions() -> list[Check]:
    """Return the versions of Python, this package and the frameworks, in that order."""
    python = f"{platform.python_version()} {platform.python_implementation()}, {sys.executable}"
    return [
        Check("versions", "python", None, python),
        Check("versions", "deepcontext", None, _deepcontext_version()),
        *(Check("versions", name, None, _version(name) or "not installed") for name in PACKAGES),
    ]


def _deepcontext_version() -> str:
    try:
        from deepcontext import __version__  # noqa: PLC0415  the native core knows it
    except ImportError:
        return _version("deepcontext-profiler") or "unknown"
    return __version__


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_core() -> Check:
    """Return whether the native core can be loaded, and from where."""
    if native_core.is_missing():
        where, advice = native_core.here(), native_core.advice()
        detail = f"not part of this installation: no wheel has it for {where}; to record, {advice}"
        return Check("core", "native core", is_available=False, detail=detail)
    try:
        from deepcontext import _native  # noqa: PLC0415  a failed import is a result
    except ImportError as error:
        return Check("core", "native core", is_available=False, detail=str(error))
    detail = f"version {_native.VERSION}, {_native.__file__}"
    return Check("core", "native core", is_available=True, detail=detail)


def _check_collectors(core: Check) -> list[Check]:
    if not core.is_available:
        return []
    from deepcontext.collectors import ALL  # noqa: PLC0415  needs the native core

    checks = []
    for make_collector in ALL:
        collector = make_collector()
        result = collector.probe()
        detail = result.reason or "available"
        if result.available:
            detail = "; ".join([detail, *_options_of(collector.name)])
        checks.append(Check("collectors", collector.name, result.available, detail))
    return checks


def _options_of(collector: str) -> list[str]:
    words = [word_of(option) for option in OPTIONS if collector in option.collectors]
    return [f"option{'s' * (len(words) > 1)} {', '.join(words)}"] if words else []


def check_machine() -> list[Check]:
    """Return what the kernel and the processor allow."""
    return [_check_paranoid(), _check_clock()]


def _check_paranoid() -> Check:
    try:
        level = _PARANOID_FILE.read_text(encoding="ascii").strip()
    except OSError as error:
        return Check("machine", "perf_event_paranoid", None, f"unknown: {error.strerror}")
    # Source: https://docs.kernel.org/admin-guide/sysctl/kernel.html#perf-event-paranoid
    meaning = (
        "hardware counters of your processes can be read"
        if int(level) <= 2  # noqa: PLR2004  a level of the kernel, see the source above
        else "ordinary users cannot read hardware counters; a level of 2 or less allows it"
    )
    return Check("machine", "perf_event_paranoid", None, f"{level} ({meaning})")


def _check_clock() -> Check:
    machine = platform.machine()
    if machine != "x86_64":
        return Check("machine", "clock", None, f"system counter of {machine}")
    text = _CPU_FILE.read_text(encoding="utf-8", errors="replace") if _CPU_FILE.exists() else ""
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    missing = [flag for flag in ("constant_tsc", "nonstop_tsc") if flag not in flags]
    if missing:
        reason = f"the processor does not report {' and '.join(missing)}; times may drift"
        return Check("machine", "clock", is_available=False, detail=f"TSC: {reason}")
    return Check("machine", "clock", is_available=True, detail="TSC, constant and nonstop")


def _measure() -> None:
    from deepcontext.collectors.torch.peak_measurement import measure_peaks  # noqa: PLC0415  as above

    peaks.keep(measure_peaks())


def check_peaks() -> list[Check]:
    """Return what this machine attains at most, as measured before, a row for each number of threads."""
    model, cores = peaks.this_cpu()
    found = [each for each in peaks.measured() if each.is_of(model, cores)]
    if not found:
        advice = (
            "not measured, so that reports say nothing of the peak: deepcontext doctor --measure"
        )
        return [Check("peaks", "processors", None, advice)]
    return [
        Check("peaks", f"{each.threads} thread{'s' * (each.threads > 1)}", None, _peaks_text(each))
        for each in sorted(found, key=lambda each: -each.threads)
    ]


def _peaks_text(found: peaks.DevicePeaks) -> str:
    """Return ``f32 40.4 GFLOP/s (+12 %), copy 3.53 GB/s (+6 %)``, each with how much a run varied."""
    from deepcontext.ui.format import format_bandwidth, format_flops  # noqa: PLC0415  imports rich

    texts = {
        **{kind: f"{format_flops(rate)}/s" for kind, rate in found.flops_per_second.items()},
        "copy": format_bandwidth(found.bytes_per_second),
    }
    return ", ".join(
        f"{kind} {text}" + (f" (+{found.spread[kind]:.0%})" if kind in found.spread else "")
        for kind, text in texts.items()
    )


def check_gpu() -> list[Check]:
    """Return which vendor libraries the dynamic linker finds."""
    checks = []
    for name, files in GPU_LIBRARIES:
        obstacle = _obstacle() if files[0].startswith("libcuda.") else ""
        if obstacle:
            detail = f"{' or '.join(files)} not loaded: {obstacle}"
            checks.append(Check("gpu libraries", name, is_available=False, detail=detail))
            continue
        found = next((file for file in files if _can_load(file)), None)
        detail = found or f"no {' or '.join(files)} on the library path"
        checks.append(Check("gpu libraries", name, found is not None, detail))
    return checks


def _obstacle() -> str:
    """Return why NVIDIA's driver must not be loaded; "" where it may be.

    As root, the driver's library would make device nodes that are missing.
    """
    try:
        from deepcontext.collectors.gpu.libraries import (  # noqa: PLC0415  needs the native core
            missing_nvidia_nodes,
        )
    except ImportError:
        return "the native core cannot be loaded"
    return "the driver has no device nodes here" if missing_nvidia_nodes() else ""


def _can_load(file: str) -> bool:
    try:
        ctypes.CDLL(file)
    except OSError:
        return False
    return True


def _render(console: Console, checks: list[Check]) -> None:
    from rich.table import Table  # noqa: PLC0415  only where it is needed
    from rich.text import Text  # noqa: PLC0415  as above

    marks = {True: "[green]yes[/]", False: "[yellow]no[/]", None: ""}
    for place, group in enumerate(dict.fromkeys(check.group for check in checks)):
        table = Table(box=None, show_header=False, pad_edge=False, title_justify="left")
        table.add_column(min_width=20)
        table.add_column(min_width=3)
        table.add_column(overflow="fold")
        for check in checks:
            if check.group == group:
                table.add_row(check.name, marks[check.is_available], check.detail)
        if place:
            console.print()
        console.print(f"[bold]{group}[/]")
        # Without the spaces that rich adds to the last column.
        for line in console.render_lines(table, pad=False):
            text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
            text.rstrip()
            console.print(text, soft_wrap=True)
