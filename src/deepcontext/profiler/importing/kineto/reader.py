"""Recognises traces of torch.profiler: a list of events in JSON (Chrome trace format, Kineto).

Fields differ by version: integer times and flows ``async_cpu_to_gpu`` until 2023, decimal times relative to
``baseTimeNanoseconds`` since 2024, kernels without a grid on AMD, files without ``External id``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deepcontext.profiler.importing.reader import Contents
    from deepcontext.profiler.importing.source_file import SourceFile

_LIST_OF_EVENTS: Final = re.compile(rb'\s*\[\s*(\{\s*"|\])')
_OBJECT: Final = re.compile(rb"\s*\{\s*\"")
_KEYS: Final = (
    b'"traceEvents"',
    b'"deviceProperties"',
    b'"schemaVersion"',
    b'"baseTimeNanoseconds"',
)
_EVENT_KEYS: Final = (b'"ph"', b'"ts"')


class KinetoReader:
    """Reads traces of torch.profiler."""

    name = "a trace of torch.profiler"

    def recognises(self, head: bytes) -> bool:
        """Return whether the first bytes are those of a Chrome trace."""
        if _OBJECT.match(head):
            return any(key in head for key in _KEYS)
        return bool(_LIST_OF_EVENTS.match(head)) and all(key in head for key in _EVENT_KEYS)

    def read(self, file: SourceFile) -> Contents:
        """Read a trace.

        Raises:
            ProfileDataError: the file is damaged, or has no event of PyTorch or of a GPU.
        """
        # Imported here, so that other commands start without the decoder.
        from deepcontext.profiler.importing.kineto.contents import contents_of  # noqa: PLC0415

        return contents_of(file)
