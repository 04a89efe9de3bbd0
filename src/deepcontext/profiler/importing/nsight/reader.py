"""Recognises exports of Nsight Systems (``nsys export --type sqlite``) and opens them.

Invariant: the tables that hold the environment of the recorded machine (TARGET_INFO_SYSTEM_ENV,
META_DATA_CAPTURE) are never read, and nothing is written beside a file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from deepcontext.profiler.importing.reader import Contents
    from deepcontext.profiler.importing.source_file import SourceFile

_MAGIC: Final = b"SQLite format 3\0"


class NsightSystemsReader:
    """Reads exports of Nsight Systems."""

    name = "an SQLite export of Nsight Systems"

    def recognises(self, head: bytes) -> bool:
        """Return whether the first bytes are those of a database; its tables decide."""
        return head.startswith(_MAGIC)

    def read(self, file: SourceFile) -> Contents:
        """Read an export.

        Raises:
            ProfileDataError: the file is damaged, compressed, or no export.
        """
        # Imported here, so that other commands start without the decoder.
        from deepcontext.profiler.importing.nsight.contents import contents_of  # noqa: PLC0415

        if file.is_compressed:
            raise ProfileDataError(
                f"cannot read '{file.path}': a compressed database; decompress it first (gunzip)"
            )
        # Immutable: not even a journal is written.
        address = f"file:{quote(str(file.path.absolute()))}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as opened:
                opened.text_factory = lambda text: text.decode("utf-8", "replace")
                return contents_of(opened, file.path)
        except sqlite3.Error as error:
            raise ProfileDataError(
                f"cannot read '{file.path}': damaged database ({error}); export again with "
                "'nsys export --type sqlite'"
            ) from error
