"""A C++ library of known depth, and native frames as tests write them."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from deepcontext import Profile

SOURCE = Path(__file__).resolve().parent / "native_chain.cpp"
WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
# What `chain_outer` puts on the stack, outermost first.
OUTER = (
    "chain_outer",
    "chain::Middle::run",
    "chain::(anonymous namespace)::convert<unsigned long>",
    "chain::(anonymous namespace)::inner",
)


def build(folder: Path, *flags: str) -> Path:
    """Compile the library with `flags` into `folder` and return its path."""
    library = folder / "libnative_chain.so"
    command = ["c++", "-std=c++17", "-O2", "-fPIC", "-shared", "-pthread", *flags]
    subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True, timeout=300)
    return library


def load(library: Path) -> ctypes.CDLL:
    chain = ctypes.CDLL(str(library))
    arguments = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
    chain.chain_outer.argtypes = chain.chain_thread.argtypes = arguments
    chain.chain_deep.argtypes = (ctypes.c_int, *arguments)
    for function in (chain.chain_outer, chain.chain_thread, chain.chain_deep):
        function.restype = None
    return chain


def address(function: object) -> int | None:
    """Return where a ctypes function is."""
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]


def path(profile: Profile, node: int, *files: str) -> list[str]:
    """Return "kind name" of each frame from the root's child down to a node.

    Args:
        profile: of which the node is.
        node: its number.
        files: native frames of other files are left out, by the beginning of their names; none for
            all. What ctypes and libffi put on the stack depends on how they were built.
    """
    frames = [profile.frame(at) for at in profile.tree.path(node)][1:]
    return [
        f"{frame.kind.label} {frame.name.rpartition('<locals>.')[2]}"
        for frame in frames
        if frame.kind is not FrameKind.NATIVE
        or not files
        or Path(frame.file).name.startswith(files)
    ]


def native(names: tuple[str, ...]) -> list[str]:
    """Return names as `path` writes them."""
    return [f"native {name}" for name in names]
