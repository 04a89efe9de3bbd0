"""Whether this installation has the native core, and what the package says and does without it.

The wheel without native code is installed if no other wheel fits: macOS, Windows, musl, a newer CPython.
This wheel reads, compares and shows profiles. A program that uses `deepcontext.scope` runs there as well.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Self, TypeVar

from deepcontext.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")


@functools.cache
def is_missing() -> bool:
    """Return whether the package was installed without its native core."""
    if "deepcontext._native" in sys.modules:
        return False
    import importlib.util  # noqa: PLC0415  a recorded program never gets here

    return importlib.util.find_spec("deepcontext._native") is None


def is_importing(beginning: str = "") -> bool:
    """Return whether the import of a module whose name begins so is under way."""
    modules = [module for name, module in sys.modules.copy().items() if name.startswith(beginning)]
    specs = [getattr(module, "__spec__", None) for module in modules]
    return any(getattr(spec, "_initializing", False) for spec in specs)


def require() -> None:
    """Do nothing if there is a native core.

    Raises:
        EnvironmentProblem: there is none.
    """
    if is_missing():
        raise EnvironmentProblem(
            f"cannot record a profile: this deepcontext was installed without its native core, because "
            f"no wheel has one for {here()}; reading profiles works (report, view, analyze, diff, merge, "
            f"export); to record, {advice()}"
        )


def here() -> str:
    """Return interpreter and platform, as in ``CPython 3.14t on linux-x86_64 (musl)``.

    The "t" stands for a CPython built without the GIL, as in the names of its programs.
    """
    import platform  # noqa: PLC0415  a recorded program need not load it
    import sysconfig  # noqa: PLC0415  the same

    version = ".".join(platform.python_version_tuple()[:2])
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        version += "t"
    is_musl = "musl" in (sysconfig.get_config_var("SOABI") or "")
    where = f"{platform.python_implementation()} {version} on {sysconfig.get_platform()}"
    return f"{where} (musl)" if is_musl else where


def advice() -> str:
    """Return what makes recording possible."""
    if sys.platform != "linux":
        return "use Linux"
    return (
        "use CPython 3.11 to 3.14, with the GIL, on Linux with glibc 2.28 or newer, or, with a C++ compiler: "
        "pip install --no-binary deepcontext-profiler deepcontext-profiler"
    )


class EmptyScope:
    """A scope that records nothing, as a block or a decorator."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, function: Function) -> Function:
        """Return the function as it is."""
        return function
