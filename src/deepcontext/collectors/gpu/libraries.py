"""Find the vendors' libraries without loading them.

An environment variable wins; then a library that the program has loaded already, because a second
copy would see nothing; then wheels, toolkits, and what the dynamic linker finds.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.profiler.format.own_os import os

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CUPTI_VARIABLE: Final = "DEEPCONTEXT_LIBCUPTI"
CUDA_DRIVER_VARIABLE: Final = "DEEPCONTEXT_LIBCUDA"
ROCPROFILER_VARIABLE: Final = "DEEPCONTEXT_LIBROCPROFILER"
ROCTRACER_VARIABLE: Final = "DEEPCONTEXT_LIBROCTRACER"
HIP_VARIABLE: Final = "DEEPCONTEXT_LIBHIP"

_CUDA_MAJORS: Final = (13, 12, 11)
_NVIDIA_DRIVER_SIGNS: Final = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")
# libcuda makes these where they are missing, when root loads it.
_NVIDIA_NODES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm")
_WINDOWS_NODE: Final = "/dev/dxg"  # of the Windows Subsystem for Linux, which has no others
_AMD_DRIVER_SIGNS: Final = ("/dev/kfd",)


@dataclass(frozen=True, slots=True)
class Library:
    """A library to open.

    Attributes:
        path: absolute path, or a bare file name for the dynamic linker to find.
        origin: how it was found, for messages.
        warning: what a user should know about the choice; "" for nothing.
        others: paths to try in turn where the library cannot reach the driver.
    """

    path: str
    origin: str
    warning: str = ""
    others: tuple[str, ...] = ()


def has_nvidia_driver() -> bool:
    """Return whether a driver is installed; loads nothing."""
    return CUDA_DRIVER_VARIABLE in os.environ or any(
        os.path.exists(sign) for sign in _NVIDIA_DRIVER_SIGNS
    )


def has_amd_driver() -> bool:
    """Return whether the kernel driver of AMD GPUs is there; loads nothing."""
    return HIP_VARIABLE in os.environ or any(os.path.exists(sign) for sign in _AMD_DRIVER_SIGNS)


def missing_nvidia_nodes() -> list[str]:
    """Return the device nodes that loading the driver's library would make; loads nothing."""
    if CUDA_DRIVER_VARIABLE in os.environ or os.path.exists(_WINDOWS_NODE):
        return []
    return [node for node in _NVIDIA_NODES if not os.path.exists(node)]


def cuda_driver() -> str:
    """Return the driver library to open."""
    return os.environ.get(CUDA_DRIVER_VARIABLE, "libcuda.so.1")


def find_cupti() -> Library:
    """Return the libcupti to open.

    Never fails: the last resort is a bare name. If the dynamic linker cannot find it, its message
    says so.
    """
    override = os.environ.get(CUPTI_VARIABLE)
    if override:
        return Library(override, f"${CUPTI_VARIABLE}")
    mapped = _native.gpu_mapped_libraries("libcupti.so")
    if mapped:
        warning = two_copies("CUPTI", mapped)
        return Library(mapped[0], "loaded by the program", warning, tuple(mapped[1:]))
    found: dict[Path, tuple[Path, str]] = {}
    for origin, path in _cupti_files(_cuda_majors()):
        if path.is_file():
            found.setdefault(path.resolve(), (path, origin))
    if found:
        (first, origin), *others = found.values()
        return Library(str(first), origin, others=tuple(str(path) for path, _ in others))
    return Library(f"libcupti.so.{_cuda_majors()[0]}", "the dynamic linker's search path")


def two_copies(what: str, mapped: list[str]) -> str:
    """Say that a library is loaded twice; "" if it is not."""
    if len(mapped) < 2:  # noqa: PLR2004  two is the plural
        return ""
    return (
        f"two copies of {what} are loaded ({', '.join(mapped)}); only one is used, and what runs "
        "through the other may be missing"
    )


def later_copy(what: str, later: Iterable[str]) -> str:
    """Say that another copy of a library was loaded; "" for none."""
    paths = ", ".join(sorted(later))
    if not paths:
        return ""
    return (
        f"another copy of {what} was loaded during the session ({paths}); what runs through it may "
        "be missing"
    )


def _cuda_majors() -> tuple[int, ...]:
    """Return the majors of CUDA to look for, that of the loaded framework first."""
    first = _major_of_torch() or _major_of_jax()
    return (first, *(each for each in _CUDA_MAJORS if each != first)) if first else _CUDA_MAJORS


def _major_of_torch() -> int:
    version = getattr(getattr(sys.modules.get("torch"), "version", None), "cuda", None)
    major = version.partition(".")[0] if isinstance(version, str) else ""
    return int(major) if major.isdigit() else 0


def _major_of_jax() -> int:
    """Return the major of jax's plugin, which loads its libcupti only when a device is used."""
    if "jax" not in sys.modules:
        return 0
    plugins = (each for each in _CUDA_MAJORS if importlib.util.find_spec(f"jax_cuda{each}_plugin"))
    return next(plugins, 0)


def _cupti_files(majors: tuple[int, ...]) -> Iterator[tuple[str, Path]]:
    for major in majors:
        for folder in _namespace_folders("nvidia"):
            for part in (f"cu{major}/lib", "cuda_cupti/lib"):
                yield "the nvidia-cuda-cupti package", folder / part / f"libcupti.so.{major}"
    for variable in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield from _toolkit_files(f"${variable}", Path(os.environ[variable]), majors)
    yield from _toolkit_files("the CUDA toolkit", Path("/usr/local/cuda"), majors)


def _toolkit_files(origin: str, root: Path, majors: Iterable[int]) -> Iterator[tuple[str, Path]]:
    for major in majors:
        for part in ("extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib"):
            yield origin, root / part / f"libcupti.so.{major}"


def _namespace_folders(package: str) -> list[Path]:
    """Return the folders of a namespace package, without importing it."""
    spec = importlib.util.find_spec(package)
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def _torch_folders() -> list[Path]:
    """Return the folder of torch, whose wheels for ROCm bring AMD's libraries; imports nothing."""
    # Not by `importlib.util.find_spec`, which would ask the profiler's own import hooks.
    spec = importlib.machinery.PathFinder.find_spec("torch")
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def find_rocprofiler() -> Library:
    """Return the librocprofiler-sdk to open."""
    return _find_rocm("librocprofiler-sdk.so", (1,), ROCPROFILER_VARIABLE)


def find_roctracer() -> Library:
    """Return the libroctracer64 to open."""
    return _find_rocm("libroctracer64.so", (4,), ROCTRACER_VARIABLE)


def find_hip() -> Library:
    """Return the libamdhip64 to open."""
    return _find_rocm("libamdhip64.so", (7, 6, 5), HIP_VARIABLE)


def _find_rocm(stem: str, majors: tuple[int, ...], variable: str) -> Library:
    override = os.environ.get(variable)
    if override:
        return Library(override, f"${variable}")
    mapped = _native.gpu_mapped_libraries(stem)
    if mapped:
        return Library(mapped[0], "loaded by the program", two_copies(stem, mapped))
    roots = [
        *((folder / "lib", "PyTorch's wheel") for folder in _torch_folders()),
        *((folder / "lib", "the ROCm wheels") for folder in _namespace_folders("_rocm_sdk_core")),
        *(
            (Path(os.environ[name]) / "lib", f"${name}")
            for name in ("ROCM_PATH", "ROCM_HOME")
            if os.environ.get(name)
        ),
        (Path("/opt/rocm/lib"), "the ROCm installation"),
    ]
    for folder, origin in roots:
        for name in (*(f"{stem}.{major}" for major in majors), stem):
            path = folder / name
            if path.is_file():
                return Library(str(path), origin)
    return Library(f"{stem}.{majors[0]}", "the dynamic linker's search path")
