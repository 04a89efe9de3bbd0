"""In a child of a profiled program, start recording when the child imports a framework, or at once.

The folder of this file is the first entry of the children's PYTHONPATH; the second is the folder
`.launch` of the run directory, which may be gone. A child that imports no framework pays only for this
file and for one finder that finds nothing. At the end, imports the `sitecustomize` that Python would
have found without this file, if any.
"""

# ruff: noqa: INP001  an entry of sys.path, not a package
# Until a framework is imported, this file imports only modules that the interpreter has loaded.
import os
import sys

TYPE_CHECKING = False  # type checkers know this name; `typing` is not loaded
if TYPE_CHECKING:
    from typing import Any


class _FrameworkWatch:
    """A finder that starts recording when the program imports a framework, and finds nothing itself."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> "Any":
        """Start recording if `name` is a framework, and let the other finders find the module."""
        if name not in {"torch", "jax"} or path is not None:
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None  # another thread has started recording
        _begin(self._folder)
        # Search again, because the running loop over the finders skips finders that were added.
        return sys.modules["_frozen_importlib"]._find_spec(name, path, target)  # noqa: SLF001


def _begin(folder: str) -> None:
    known_modules = frozenset(sys.modules)
    try:
        import json  # noqa: PLC0415

        try:
            with open(f"{folder}/options.json", encoding="utf-8") as file:  # noqa: PTH123
                note = json.load(file)
        except FileNotFoundError:
            return  # the program has ended, and nothing had been recorded below it
        try:
            from deepcontext.profiler.recording.launch import child_start  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name != "deepcontext":
                raise
            # The launcher found the package through a folder that is only on its own sys.path.
            sys.path.insert(0, note["package_root"])
            try:
                from deepcontext.profiler.recording.launch import child_start  # noqa: PLC0415
            finally:
                sys.path.remove(note["package_root"])
        from deepcontext.collectors import ALL  # noqa: PLC0415  the native core

        child_start.begin_in_child(note, ALL, known_modules)
    except Exception as error:  # noqa: BLE001  no failure of the profiler may stop the program
        # `run_directory.note_failure`, which may be what cannot be imported. The streams are the program's.
        text = f"process {os.getpid()}: {type(error).__name__}: {' '.join(str(error).split())}\n"
        import contextlib  # noqa: PLC0415  only when needed

        with contextlib.suppress(OSError):  # the program has ended, and its run directory is gone
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            failed = os.open(f"{folder}/failed", flags, 0o600)
            os.write(failed, text.encode(errors="backslashreplace"))
            os.close(failed)


_own_folder = __file__.rpartition("/")[0]
# `run_directory.launch_folder`
_folder = next((entry for entry in sys.path if entry.endswith(".dcrun/.launch")), "")
sys.path[:] = [entry for entry in sys.path if entry not in {_own_folder, _folder}]
for _entry in (_own_folder, _folder):
    sys.path_importer_cache.pop(_entry, None)
# The program itself is recorded from its first line, by the launcher's sitecustomize.
if _folder and "deepcontext.profiler.recording.session" not in sys.modules:
    # `run_directory.py` writes this file for --children all. The resource tracker and the fork server
    # of `multiprocessing` do no work of their own.
    if os.access(f"{_folder}/all", os.F_OK) and not any(
        word.startswith("from multiprocessing.") for word in sys.orig_argv
    ):
        _begin(_folder)
    else:
        sys.meta_path.insert(0, _FrameworkWatch(_folder))
del sys.modules[__name__]
__import__("sitecustomize")
