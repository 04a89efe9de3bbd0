"""The profiler holds no lock while Python code may run: another thread may wait with the GIL held."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
FAKES = ROOT / "tests" / "fakes"
sys.path.insert(0, str(FAKES))

import hlo  # noqa: E402  found through the line above
import locks_check  # noqa: E402


def test_counts_are_asked_for_while_a_program_is_converted(
    in_subprocess: Callable[[str], str],
) -> None:
    # On CPython 3.11 making an object may collect garbage, and jax's callback for collections hands
    # the GIL over, as the one here does.
    output = in_subprocess(f"""
        import faulthandler, gc, threading, time
        from deepcontext import _native
        faulthandler.dump_traceback_later(30, exit=True)
        _native.jax_add_program({hlo.adding("f", 50)!r}, "", "", [], "")
        gc.callbacks.append(lambda phase, info: time.sleep(0.0001))
        gc.set_threshold(20)
        is_over = False
        def convert():
            while not is_over:
                assert len(_native.jax_program(0)["operations"]) == 50
        thread = threading.Thread(target=convert)
        thread.start()
        for _ in range(200):
            _native.jax_window_counts()
            time.sleep(0.0005)
        is_over = True
        thread.join()
        print("went on")
    """)
    assert output == "went on\n"


def test_python_allocates_nothing_while_a_lock_is_held(
    in_subprocess: Callable[[str], str], tmp_path: Path
) -> None:
    output = in_subprocess(f"""
        import gc, sys, threading
        from conftest import call_source, read, session
        from deepcontext import _native
        sys.path.insert(0, {str(FAKES)!r})
        from locks_check import LocksCheck
        check = LocksCheck({str(locks_check.build(tmp_path))!r})
        _native.start_sampler(200.0)
        with session():
            _native.jax_add_program({hlo.adding("f", 50)!r}, "", "", [], "")
            for number in range(50):
                call_source(f"name = {{number}}; mark()")  # code objects come and go
                thread = threading.Thread(target=call_source, args=("mark()",))
                thread.start()
                token = _native.enter_scope("scope")
                _native.leave_scope(token)
                _native.jax_program(0)
                _native.jax_window_counts()
                _native.memory_summary()
                _native.native_files()
                gc.collect()
                thread.join()
            read()
        _native.jax_clear()
        print(check.count())
    """)
    assert int(output) > 1000


def test_locks_are_of_the_kind_that_is_counted() -> None:
    """Layers that never see Python are exempt: they cannot hold a lock around a Python object."""
    # Those of conditions are held for a few instructions.
    own = {"mutex.h", "condition.h", "operations.h", "operations.cpp"}
    for path in sorted((ROOT / "native").rglob("*.[ch]*")):
        text = _code(path)
        if path.name in own or "tests" in path.parts or not re.search(r"std::\w*mutex\b", text):
            continue
        assert path.is_relative_to(ROOT / "native" / "gpu"), f"{path}: use deepcontext::Mutex"
        assert not re.search(r"#include [<\"](Python|nanobind|python/)", text), path


def test_layers_below_the_interpreter_do_not_see_it() -> None:
    for folder in ("core", "gpu", "unwind"):
        for path in sorted((ROOT / "native" / folder).rglob("*.[ch]*")):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"#include [<\"](Python|nanobind|python/)", text), path


def test_bindings_take_no_lock() -> None:
    """What they need is copied out by the layer below, without the GIL where that may take time."""
    for path in sorted((ROOT / "native" / "bindings").glob("*.cpp")):
        text = _code(path)
        if path.name == "module.cpp":  # forks take all locks, and make nothing until they are back
            text = re.sub(r"void beforeFork\(\) \{.*?^\}", "", text, flags=re.DOTALL | re.MULTILINE)
        assert not re.search(r"_(lock|guard)\b|\block\(|WithoutGil::", text), path


def _code(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text(encoding="utf-8"))


def test_a_daemon_thread_in_a_binding_when_the_interpreter_ends(
    in_subprocess: Callable[[str], str],
) -> None:
    # Up to CPython 3.13 the thread is unwound when it asks for the GIL, and nothing may pass through
    # the frames of a binding.
    output = in_subprocess("""
        import threading, time
        from deepcontext import _native
        def ask():
            while True:
                _native.jax_window_counts()
                _native.read_tree(())
        for _ in range(4):
            threading.Thread(target=ask, daemon=True).start()
        time.sleep(0.2)
        print("ends")
    """)
    assert output == "ends\n"
