"""Modules of the standard library that the profiler has loaded and that the program replaces."""

from __future__ import annotations

import importlib.machinery
import os
import sys
from pathlib import Path


def hide_shadowed(import_folder: str, known_modules: frozenset[str]) -> None:
    """Let the program import a `queue.py` beside it although the profiler has loaded the standard one.

    The standard module is removed from `sys.modules`; the profiler keeps its references to it.
    """
    is_library = import_folder == str(Path(os.__file__).resolve().parent)
    if sys.flags.safe_path or is_library or not import_folder:
        return  # no folder comes before the standard library
    loaded = {name.partition(".")[0] for name in sys.modules.keys() - known_modules}
    shadowed = {
        name
        for name in loaded - {"deepcontext"} - set(sys.builtin_module_names)
        if (spec := importlib.machinery.PathFinder.find_spec(name, [import_folder])) is not None
        and spec.loader is not None
    }
    for name in list(sys.modules.keys() - known_modules):
        if name.partition(".")[0] in shadowed:
            del sys.modules[name]
