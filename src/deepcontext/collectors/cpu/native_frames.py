"""Native C and C++ frames between Python, operators and GPU calls; only if requested.

The stack walk is native (`native/python/native_merge.h`), and so is the search for names, which
runs when the profile is written, never on a thread of the program. This file starts the walks and
says how many did not reach their operator or Python frame.
"""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.options import SessionOptions

# Warn if more than this share of the walks ended early.
_NOTABLE_LOSS: Final = 0.02
SECTION: Final = "native_files"


class NativeFrames:
    """Puts operators and GPU calls under the C and C++ functions that ran them."""

    name = "native frames"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = ()

    def __init__(self) -> None:
        self._is_wanted = False

    def probe(self) -> Availability:
        """Say whether native stacks can be walked on this processor."""
        if not _native.native_is_supported():
            return Availability(
                available=False,
                reason="native frames are collected on x86-64 and aarch64 only; this is "
                f"{platform.machine()}",
            )
        return Availability(available=True, reason="off by default")

    def start(self, options: SessionOptions) -> None:
        """Begin to walk stacks, if the options ask for it.

        Raises:
            EnvironmentProblem: when stacks cannot be walked on this processor.
        """
        self._is_wanted = options.native
        if not self._is_wanted:
            return
        availability = self.probe()
        if not availability.available:
            raise EnvironmentProblem(availability.reason)
        _native.native_start()

    def stop(self) -> None:
        """End."""
        _native.native_stop()

    def settle(self) -> None:
        """Nothing arrives late."""

    def outcome(self) -> Outcome:
        """Say how many frames were seen, and how many walks ended early and why."""
        if not self._is_wanted:
            return Outcome(Status.OFF, "not requested (--native)")
        counts = _native.native_counts()
        return Outcome(
            Status.RAN,
            "",
            {},
            {
                "native_walks": counts["walks"],
                "native_frames": counts["frames"],
                "native_walks_by_libgcc": counts["by_libgcc"],
                "native_walks_ended_without_table": counts["no_rule"],
                "native_walks_ended_off_stack": counts["bad_stack"],
                "native_walks_ended_too_deep": counts["too_deep"],
            },
            _notes(counts),
        )

    def sections(self) -> Mapping[str, bytes]:
        """Return the files of the native functions that were seen, with their build ids."""
        if not self._is_wanted:
            return {}
        return {SECTION: json.dumps(_native.native_files()).encode()}


def _notes(counts: _native.NativeCounts) -> tuple[str, ...]:
    ended = counts["no_rule"] + counts["bad_stack"] + counts["too_deep"]
    if ended <= _NOTABLE_LOSS * counts["walks"]:
        return ()
    note = (
        f"{ended} of {counts['walks']} native stacks could not be walked to their operator or "
        f"Python frame: their outer native frames are missing ({counts['no_rule']} in code without "
        f"unwind information, {counts['bad_stack']} not on the thread's stack, "
        f"{counts['too_deep']} too deep)"
    )
    return (note,)
