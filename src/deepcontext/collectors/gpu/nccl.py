"""Collectives as NCCL or RCCL tells of them: algorithm, protocol, times of kernels and proxies.

NCCL loads the library that NCCL_PROFILER_PLUGIN names when it makes its first communicator; the native core
is such a library (`native/nccl/plugin.cpp`). Off unless asked for, because NCCL then runs a proxy thread for
each collective. Invariant: a variable that the program has set is left as it is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from deepcontext import _native
from deepcontext.profiler.format import nccl
from deepcontext.profiler.format.status import Outcome, Status
from deepcontext.profiler.recording.collector import Availability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.options import SessionOptions

VARIABLE: Final = "NCCL_PROFILER_PLUGIN"
# NCCL cuts a longer path off. Source: src/plugin/plugin_open.cc, MAX_STR_LEN.
_LONGEST_PATH: Final = 254
_NOT_ASKED: Final = "--nccl asks NCCL and RCCL for algorithms and times"
_NO_NCCL: Final = (
    "NCCL made no communicator that this profiler was told of (needs NCCL 2.27 or newer)"
)


class Nccl:
    """Asks NCCL what it does."""

    name = "nccl"
    phase_rules: Sequence[PhaseRule] = ()
    metrics: Sequence[MetricDescriptor] = ()

    def __init__(self) -> None:
        self._is_asked = False
        self._has_set = False
        self._refusal = ""

    def probe(self) -> Availability:
        """Say whether NCCL would load the profiler."""
        refusal = _refusal()
        return Availability(available=not refusal, reason=refusal or "with --nccl")

    def start(self, options: SessionOptions) -> None:
        """Offer the native core to NCCL, if asked for."""
        self._is_asked = options.nccl
        if not self._is_asked:
            return
        self._refusal = _refusal()
        if self._refusal:
            return
        if VARIABLE not in os.environ:
            os.environ[VARIABLE] = _native.__file__
            self._has_set = True
        _native.nccl_start()

    def stop(self) -> None:
        """Ask for nothing more, and take the variable back."""
        if not self._is_asked or self._refusal:
            return
        _native.nccl_stop()
        if self._has_set and os.environ.get(VARIABLE) == _native.__file__:
            del os.environ[VARIABLE]
        self._has_set = False

    def settle(self) -> None:
        """Nothing is settled."""

    def outcome(self) -> Outcome:
        """Say what NCCL told."""
        if not self._is_asked:
            return Outcome(Status.OFF, _NOT_ASKED)
        if self._refusal:
            return Outcome(Status.UNAVAILABLE, self._refusal)
        found = _native.nccl_read()
        if not found["communicators"]:
            return Outcome(Status.OFF, _NO_NCCL)
        missing = found["dropped"] + found["late"]
        details = {"communicators": len(found["communicators"]), "missing_events": missing}
        if missing:
            return Outcome(Status.DEGRADED, f"{missing:,} events of NCCL are missing", details)
        return Outcome(Status.RAN, "", details)

    def sections(self) -> Mapping[str, bytes]:
        """Return the sums, where NCCL told of a collective."""
        if not self._is_asked or self._refusal:
            return {}
        found: dict[str, Any] = {**_native.nccl_read()}
        if not found["calls"]:
            return {}
        names = ("id", "ranks", "rank", "nodes")
        found["communicators"] = [
            dict(zip(names, (f"{number:x}", *rest), strict=True))
            for number, *rest in found["communicators"]
        ]
        return {nccl.SECTION: nccl.encode(found)}


def _refusal() -> str:
    """Return "" or why NCCL cannot load the profiler."""
    plugin = os.environ.get(VARIABLE, _native.__file__)
    if plugin != _native.__file__:
        return f"{VARIABLE} is set ({plugin}), so NCCL loads that plugin; unset it to use --nccl"
    if len(os.fsencode(plugin)) > _LONGEST_PATH:
        return f"the path of the native core is longer than NCCL's limit of {_LONGEST_PATH} bytes: {plugin}"
    return ""
