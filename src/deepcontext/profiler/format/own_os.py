"""`os` and `os.path` as they were when the profiler was imported, and files read through them.

Programs replace functions of `os` and `open` for their tests (`unittest.mock`, pyfakefs). A snapshot on
another thread would be counted among the calls that such a test expects, or end in a fake file system.
Does not cover `pathlib`, which calls the program's `os`. Invariant: no function here looks up a name in
a module of the program's.
"""

from __future__ import annotations

import os as _os
import posixpath as _posixpath
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

_SHARED: Final = "genericpath"  # whose functions `os.path` has, too
_PART: Final = 1 << 20


def _copy(module: ModuleType, **replaced: Any) -> SimpleNamespace:
    """Return the functions of a module, which find each other in the copy; pyfakefs patches modules."""
    names = {**vars(module), **replaced}
    for name, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__ in {module.__name__, _SHARED}:
            copy = FunctionType(
                function.__code__, names, name, function.__defaults__, function.__closure__
            )
            copy.__kwdefaults__ = function.__kwdefaults__
            names[name] = copy
    return SimpleNamespace(**{k: v for k, v in names.items() if not k.startswith("__")})


if TYPE_CHECKING:
    os = _os
else:
    os = _copy(_os)
    os.path = _copy(_posixpath, os=os)


def read(descriptor: int, most: int) -> bytes:
    """Read up to `most` bytes, fewer only at the end of the file."""
    content = b""
    while len(content) < most and (part := os.read(descriptor, min(_PART, most - len(content)))):
        content += part
    return content


def read_file(path: str, most: int = _PART) -> bytes:
    """Return the first `most` bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read(descriptor, most)
    finally:
        os.close(descriptor)
