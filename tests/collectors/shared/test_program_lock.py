"""A lock that hooks and operations share, in a child forked while another thread holds it."""

from __future__ import annotations

import os
import threading

from deepcontext.collectors.shared.program_lock import ProgramLock


def test_a_child_forked_while_the_lock_is_held_has_it_free() -> None:
    lock = ProgramLock()
    is_held, is_forked = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            is_forked.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    child = os.fork()
    if child == 0:
        with lock:  # a wait for the holder, which does not exist here, would end without the lock
            is_own = lock._lock._is_owned()  # type: ignore[attr-defined]
        os._exit(0 if is_own and lock._inside == [] else 1)
    is_forked.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with lock:
        assert lock._lock._is_owned()  # type: ignore[attr-defined]


def test_a_child_forked_by_the_holder_leaves_the_lock_as_it_entered_it() -> None:
    lock = ProgramLock()
    child = -1
    try:
        with lock:
            child = os.fork()
            with lock:
                assert lock._lock._is_owned()  # type: ignore[attr-defined]
        is_free = not lock._lock._is_owned() and lock._inside == []  # type: ignore[attr-defined]
    finally:
        if child == 0:
            os._exit(0 if "is_free" in locals() and is_free else 1)
    assert is_free
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
