"""Which source files are the user's own code, and what a line of one says.

Does not read profiles. Decided by path alone: whether a file is there, and what it holds now, says
nothing about what it was when the program ran.
"""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Final

# What people put under these is installed, generated or the interpreter's own. A checkout of torch
# is known by its sub-packages, so that a user's own folder called "torch" stays the user's. Files of
# torch's Inductor are known by their names in any folder (TORCHINDUCTOR_CACHE_DIR): "c" and a hash,
# in a folder named after the hash's first two characters. Bazel runs a user's programs from ~/.cache.
# Source: torch/_inductor/codecache.py, get_path and code_hash.
_LIBRARY: Final = re.compile(
    r"""
      /(site-packages|dist-packages)/
    | /lib(64)?/python3(\.\d+t?)?/
    | /lib/python3\d*\.zip/
    | /torch/(_\w+|amp|ao|autograd|cuda|distributed|func|fx|jit|nn|optim|utils)/
    | /torch/(_\w+|functional|library|serialization|storage)\.py$
    | /\.cache/(?!bazel/)
    | /(torchinductor_[^/]+|torch_compile_cache|inductor_cache)/
    | /(?P<start>[a-z2-7]{2})/c(?P=start)[a-z2-7]{40,}\.py$
    | /torch_geometric(\.\w+)+_\w{8}\.py$
    | /deepcontext/(profiler|collectors|analyzers|ui)/
    """,
    re.VERBOSE,
)
# Code that was typed, not generated: `python -c`, standard input, a notebook's cell.
_TYPED: Final = re.compile(r"<(string|stdin|ipython-input-.*)>")


def is_user_file(file: str) -> bool:
    """Say whether the file of a Python frame is the program's own code.

    Args:
        file: the frame's file: an absolute path, "<string>" or the like, or "" for none.
    """
    if not file:
        return False
    if file.startswith("<"):
        return _TYPED.fullmatch(file) is not None
    return _LIBRARY.search(file.replace("\\", "/")) is None


def line_text(file: str, line: int, not_after_ns: int | None = None) -> str:
    """Return the text of a source line without its indentation, or "" when it cannot be known.

    Args:
        file: path of the source file.
        line: 1-based number.
        not_after_ns: when the program started, unix ns. A file changed since then may say
            something else on this line, so its text is not given.
    """
    try:
        changed_ns = Path(file).stat().st_mtime_ns
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        return _typed_text(file, line)
    if not_after_ns is not None and changed_ns > not_after_ns:
        return ""
    linecache.checkcache(file)
    return linecache.getline(file, line).strip()


def _typed_text(file: str, line: int) -> str:
    """Return a line of code that never was in a file: the cell of a notebook, in its own process."""
    entry = linecache.cache.get(file, ())
    # Entries of files, and of those gone since, carry the time they were changed.
    is_typed = len(entry) == 4 and entry[1] is None  # noqa: PLR2004  a loader's entry has 1 field
    return linecache.getline(file, line).strip() if is_typed else ""
