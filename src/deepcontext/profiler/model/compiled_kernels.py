"""Compiled kernels: the Python lines and operators behind each launch.

Reads the section that `collectors/torch/compilation.py` writes. Does not know the tree: a caller asks
with a frame's file and line, or with a kernel's name.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION = "torch_compile"
_MAJOR = 1
# With torch's `cpp.enable_kernel_profile` a C++ kernel is an operator of this name.
_GRAPH_PREFIX = re.compile(r"graph_\d+_")


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One line of generated code that launches a kernel.

    Attributes:
        kernel: the kernel's name, for example ``triton_poi_fused_add_0``.
        file: the generated file.
        line: 1-based line of the launch in `file`.
        operators: ATen operators fused into the kernel; empty where unknown.
        source: lines of the program that the kernel computes; empty where unknown.
        is_complete: whether `source` names the lines of all operators, not of one operator only.
    """

    kernel: str
    file: str
    line: int
    operators: tuple[str, ...]
    source: tuple[Frame, ...]
    is_complete: bool

    @property
    def is_generated(self) -> bool:
        """Whether the compiler made the kernel; otherwise an operator, ``extern_kernels.mm``."""
        return "." not in self.kernel


@dataclass(frozen=True, slots=True)
class CompiledKernels:
    """All launches of a profile."""

    launches: tuple[KernelLaunch, ...] = ()

    @classmethod
    def from_sections(cls, sections: Mapping[str, bytes]) -> Self:
        """Read a profile's section; a profile without one has no launches.

        Raises:
            ProfileDataError: when the section is not what this build reads.
        """
        payload = sections.get(SECTION)
        if payload is None:
            return cls()
        try:
            content = json.loads(payload)
            if content["version"] != _MAJOR:
                raise ProfileDataError(
                    f"cannot read section '{SECTION}': version {content['version']}, this build "
                    f"reads {_MAJOR}; upgrade deepcontext"
                )
            return cls(
                tuple(
                    _launch(kernel, launch)
                    for kernel, launches in content["kernels"].items()
                    for launch in launches
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProfileDataError(
                f"cannot read section '{SECTION}': {type(error).__name__}: {error}"
            ) from error

    def named(self, kernel: str) -> tuple[KernelLaunch, ...]:
        """Return the launches of a kernel; several graphs may use one name for different kernels."""
        name = kernel_name(kernel)
        return tuple(launch for launch in self.launches if launch.kernel == name)


def kernel_name(frame: str) -> str:
    """Return the kernel's name from its frame's name, without ``graph_0_``."""
    return _GRAPH_PREFIX.sub("", frame, count=1)


def _launch(kernel: str, values: Mapping[str, Any]) -> KernelLaunch:
    return KernelLaunch(
        kernel=kernel,
        file=str(values["file"]),
        line=int(values["line"]),
        operators=tuple(map(str, values["operators"])),
        source=tuple(
            Frame(FrameKind.PYTHON, str(function), str(file), int(line))
            for file, line, function in values["source"]
        ),
        is_complete=bool(values["is_complete"]),
    )
