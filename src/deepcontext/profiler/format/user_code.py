"""Which source files are the user's code.

Decided by path alone, because whether a file exists and what it holds now says nothing about the file at the
time the program ran. Standard library only: it runs in the program under test, too.
"""

from __future__ import annotations

import functools
import re
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
