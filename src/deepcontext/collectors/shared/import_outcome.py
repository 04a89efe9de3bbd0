"""What the trust report says if a framework was loaded late, unnoticed or not at all.

Does not wait for imports (`profiler/recording/import_hook.py`). Invariant: no collector says "the
program did not import" about a framework that is loaded.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from deepcontext.profiler.format.status import ERROR_MARK, Outcome, Status

if TYPE_CHECKING:
    from deepcontext.profiler.recording.import_hook import ImportHook


def not_started(hook: ImportHook, figures: str) -> Outcome:
    """Return the outcome of a collector that has not noticed its framework.

    Args:
        hook: what waited for the framework.
        figures: what the profile lacks if the framework was loaded nevertheless.
    """
    name = hook.module
    if hook.has_missed:
        reason = (
            f"{name} was loaded but the profiler did not notice, so {figures} are missing from this "
            f"profile; this is a bug in deepcontext: report it, and how the program loads {name}"
        )
        return Outcome(Status.UNAVAILABLE, reason, notes=(f"{ERROR_MARK}{reason}",))
    if sys.modules.get(name) is not None:
        return Outcome(Status.OFF, f"{name} was not loaded completely")
    return Outcome(Status.OFF, f"the program did not import {name}")


def lateness(hook: ImportHook, figures: str) -> str:
    """Return what is missing when the framework was noticed late; "" for nothing."""
    if not hook.is_late:
        return ""
    return (
        f"{hook.module} was loaded in a way that the profiler did not notice until the next "
        f"snapshot: {figures} before it are missing"
    )
