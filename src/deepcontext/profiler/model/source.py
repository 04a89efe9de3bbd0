"""Which source files are the user's code, and the text of a source line.

Does not read profiles. Decided by path alone, because whether a file exists and what it holds now
says nothing about the file at the time the program ran.
"""

from __future__ import annotations

import functools
import linecache
import re
from pathlib import Path
from typing import Final

# Files under these paths are installed, generated or part of the interpreter. A checkout of torch is
# recognised by its sub-packages, so that a user's folder called "torch" stays user code. Files of
# torch's Inductor are recognised by name in any folder (TORCHINDUCTOR_CACHE_DIR): "c" and a hash, in
# a folder named after the hash's first two characters. Bazel runs user programs from ~/.cache.
# Children of a run first import the profiler's file in its run directory.
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
    | \.dcrun/\.launch/sitecustomize\.py$
    """,
    re.VERBOSE,
)
# Code that a person typed: `python -c`, standard input, a prompt, a notebook's cell, an example in a
# docstring; and functions that cloudpickle sent to another process (joblib, Dask, Ray), which lose their
# file. Source: cloudpickle/cloudpickle.py, _code_reduce.
_TYPED: Final = re.compile(
    r"<(string|stdin|console|dynamic-code|doctest .*|(ipython|python)-input-.*)>"
)


@functools.lru_cache(maxsize=1 << 16)
def is_user_file(file: str) -> bool:
    """Return whether the file of a Python frame is user code.

    Args:
        file: the frame's file: an absolute path, "<string>" or the like, or "" for none.
    """
    if not file:
        return False
    if file.startswith("<"):
        return _TYPED.fullmatch(file) is not None
    return _LIBRARY.search(file.replace("\\", "/")) is None


def line_text(file: str, line: int, not_after_ns: int | None = None) -> str:
    """Return the text of a source line without its indentation, or "" when it is unknown.

    Args:
        file: path of the source file.
        line: 1-based number.
        not_after_ns: when the program started, unix ns. A file changed since then may hold other
            text on this line, so "" is returned.
    """
    try:
        changed_ns = Path(file).stat().st_mtime_ns
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        return _typed_text(file, line)
    if not_after_ns is not None and changed_ns > not_after_ns:
        return ""
    linecache.checkcache(file)
    return linecache.getline(file, line).strip()


def lines_around(file: str, line: int, around: int, not_after_ns: int | None = None) -> str:
    """Return a line of a source file with those around it, each with its number; "" when unknown.

    Args:
        file: path of the source file.
        line: 1-based number.
        around: lines above, and lines below.
        not_after_ns: as for `line_text`.
    """
    if not line_text(file, line, not_after_ns):
        return ""
    content = linecache.getlines(file)
    first, last = max(line - around, 1), min(line + around, len(content))
    numbers = range(first, last + 1)
    return "\n".join(f"{number:>5} {content[number - 1].rstrip()}" for number in numbers)


def _typed_text(file: str, line: int) -> str:
    """Return a line of code that was never in a file: a notebook's cell, in the same process."""
    entry = linecache.cache.get(file, ())
    # Entries of files, including deleted files, carry a modification time.
    is_typed = len(entry) == 4 and entry[1] is None  # noqa: PLR2004  a loader's entry has 1 field
    return linecache.getline(file, line).strip() if is_typed else ""
