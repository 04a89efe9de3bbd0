"""The system's clocks, read without the module `time`.

Programs replace the functions of `time` for their tests (freezegun, `unittest.mock`), in whatever
module has imported them. Does not sleep.
"""

from __future__ import annotations

from deepcontext._native import monotonic_ns, process_cpu_ns, thread_cpu_ns, unix_ns

__all__ = [
    "monotonic_ns",
    "monotonic_s",
    "process_cpu_ns",
    "process_cpu_s",
    "thread_cpu_ns",
    "unix_ns",
]


def monotonic_s() -> float:
    """Return `monotonic_ns` in seconds."""
    return monotonic_ns() / 1e9


def process_cpu_s() -> float:
    """Return `process_cpu_ns` in seconds."""
    return process_cpu_ns() / 1e9
