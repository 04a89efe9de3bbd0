"""Start the profiler in a program that `deepcontext profile` launched, then step aside.

The interpreter imports this file because its folder is first on PYTHONPATH. The file removes what
the launcher added, so that the program and its children see what they see without the launcher, and
ends by importing the `sitecustomize` that would have been found, if there is one. No other file may
be in this folder, because it would shadow a module of the program.
"""

# ruff: noqa: INP001  an entry of sys.path, not a package
# Until the traces are removed, only modules that the interpreter has loaded already are imported.
import os
import sys
import time


def _begin(known_modules: frozenset[str], note: str) -> None:
    begun_ns = time.perf_counter_ns()  # the program has not begun
    import json  # noqa: PLC0415  counted among what the profiler loaded, see bootstrap.py

    fields = json.loads(note)
    if fields["pythonpath"] is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = fields["pythonpath"]
    # deepcontext/profiler/recording/launch/path/sitecustomize.py
    package_root = __file__.rsplit("/", 5)[0]
    try:
        import deepcontext  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "deepcontext":
            raise
        # The launcher found the package through a folder that is only on its own sys.path.
        sys.path.insert(0, package_root)
        try:
            import deepcontext  # noqa: PLC0415
        finally:
            sys.path.remove(package_root)
    from deepcontext.collectors import ALL  # noqa: PLC0415
    from deepcontext.profiler.recording.launch import bootstrap  # noqa: PLC0415

    manager = deepcontext._MANAGER  # noqa: SLF001  one package
    bootstrap.begin(
        # Not deepcontext.stop: it loads numpy, to return what has been written.
        bootstrap.Recorder(
            lambda launch: manager.start(
                launch.output, launch.session, ALL, force=launch.force, launched_as=launch.script
            ),
            manager.stop,
            manager.discard,
            ALL,
        ),
        bootstrap.LaunchOptions.of(fields["options"]),
        known_modules=known_modules,
        package_root=package_root,
        begun_ns=begun_ns,
    )


def _remove_traces() -> str | None:
    folder = __file__.rpartition("/")[0]
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    sys.path_importer_cache.pop(folder, None)
    return os.environ.pop("DEEPCONTEXT_LAUNCH", None)


def _say(text: str) -> None:
    import contextlib  # noqa: PLC0415  the profiler, which has begun, has loaded it

    with contextlib.suppress(OSError):  # closed or full
        os.write(2, f"[deepcontext] {text}\n".encode(errors="backslashreplace"))


_known_modules = frozenset(sys.modules)
_note = _remove_traces()
if _note is not None:
    import gc

    # A collection that the start causes would change when the program's own garbage is found.
    _collects = gc.isenabled()
    gc.disable()
    try:
        _begin(_known_modules, _note)
    except Exception as _error:  # noqa: BLE001  no failure of the profiler may stop the program
        _say(
            "the program runs unprofiled: the profiler did not start: "
            f"{type(_error).__name__}: {_error}"
        )
    finally:
        if _collects:
            gc.enable()
# If there is no other one, this fails as a missing sitecustomize does, which `site` expects.
del sys.modules[__name__]
__import__("sitecustomize")
