"""Which installed package a source file belongs to. Decided by path alone, like `user_code.py`."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from deepcontext.profiler.format.user_code import is_user_file

_INSTALLED: Final = re.compile(r"/(?:site-packages|dist-packages)/")
_STANDARD: Final = re.compile(r"/lib(?:64)?/python3(?:\.\d+t?)?/|/lib/python3\d*\.zip/")
_FROZEN: Final = re.compile(r"<frozen ([\w.]+)>")
# Operators, modules and programs describe what happens inside these packages.
_FRAMEWORKS: Final = frozenset({
    "functorch",
    "jax",
    "jaxlib",
    "numpy",
    "torch",
    "torchgen",
    "triton",
})


class Origin(enum.IntEnum):
    """Where the code of a file comes from."""

    USER = 0
    INSTALLED = 1
    FRAMEWORK = 2
    STANDARD = 3
    GENERATED = 4  # also any other file that belongs to no package


@dataclass(frozen=True, slots=True)
class Package:
    """The package a file belongs to.

    Attributes:
        name: the import name, ``transformers``; "" for files of no package.
        origin: where its code comes from.
        path: the file relative to the folder of packages: ``transformers/trainer.py``.
    """

    name: str
    origin: Origin
    path: str


def package_of(file: str) -> Package:
    """Return the package of a Python frame's file."""
    if is_user_file(file):
        return Package("", Origin.USER, file)
    frozen = _FROZEN.fullmatch(file)
    if frozen:
        return Package(frozen[1].partition(".")[0], Origin.STANDARD, file)
    posix_file = file.replace("\\", "/")
    for pattern, origin in ((_INSTALLED, Origin.INSTALLED), (_STANDARD, Origin.STANDARD)):
        *_, last = [None, *pattern.finditer(posix_file)]
        if last is not None:
            path = posix_file[last.end() :]
            name = PurePosixPath(path.partition("/")[0]).stem
            is_framework = origin is Origin.INSTALLED and name in _FRAMEWORKS
            return Package(name, Origin.FRAMEWORK if is_framework else origin, path)
    # Other files that are not the user's: a checkout of torch, or code that a library generated.
    return Package("", Origin.GENERATED, file)
