"""A file of another tool: its bytes, decompressed as they are read, under ceilings.

Does not know formats. Invariant: at most one chunk is in memory.
"""

from __future__ import annotations

import stat
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deepcontext.errors import ProfileDataError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

_CHUNK_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31  # zlib: the gzip container, largest window
# Traces compress 10- to 60-fold; deflate reaches 1,030-fold with a run of one byte.
_MOST_EXPANSION: Final = 256
_ALWAYS_ALLOWED_BYTES: Final = 1 << 28


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One regular file.

    Attributes:
        path: where the file is.
        head: its first bytes, decompressed, at most 64 KiB.
        size_bytes: its size as stored.
        is_compressed: whether it is compressed with gzip.
    """

    path: Path
    head: bytes
    size_bytes: int
    is_compressed: bool

    @classmethod
    def open(cls, path: Path) -> SourceFile:
        """Look at a file.

        Raises:
            UserError: there is no such file, it is no regular file, or it cannot be opened.
            ProfileDataError: its compressed data is damaged.
        """
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                what = "it is a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
                raise UserError(f"cannot read '{path}': {what}; name a file")
            with path.open("rb") as opened:
                start = opened.read(_HEAD_BYTES)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"cannot read '{path}': {reason}; check the path") from error
        is_compressed = start.startswith(_GZIP)
        if is_compressed:
            try:
                start = zlib.decompressobj(_GZIP_WINDOW).decompress(start, _HEAD_BYTES)
            except zlib.error as error:
                raise _damaged(path, error) from error
        return cls(path, start, found.st_size, is_compressed)

    def chunks(self) -> Iterator[bytes]:
        """Yield the content, decompressed.

        Raises:
            ProfileDataError: the compressed data is damaged, ends early, or expands without bound.
        """
        with self.path.open("rb") as opened:
            if self.is_compressed:
                yield from self._decompressed(opened)
                return
            while chunk := opened.read(_CHUNK_BYTES):
                yield chunk

    def _decompressed(self, stored: BinaryIO) -> Iterator[bytes]:
        decompressor, written = zlib.decompressobj(_GZIP_WINDOW), 0
        most = max(self.size_bytes * _MOST_EXPANSION, _ALWAYS_ALLOWED_BYTES)
        waiting = stored.read(_CHUNK_BYTES)
        while waiting:
            try:
                chunk = decompressor.decompress(waiting, _CHUNK_BYTES)
            except zlib.error as error:
                raise _damaged(self.path, error) from error
            written += len(chunk)
            if written > most:
                raise ProfileDataError(
                    f"cannot read '{self.path}': {self.size_bytes:,} bytes expand to more than {most:,}, "
                    f"over {_MOST_EXPANSION} times; if the file is a trace, decompress it first"
                )
            if chunk:
                yield chunk
            # Files may hold several members, as those of `pigz` do, and zeros behind the last.
            waiting = decompressor.unconsumed_tail or decompressor.unused_data.lstrip(b"\0")
            waiting = waiting or stored.read(_CHUNK_BYTES)
            if decompressor.eof and waiting.strip(b"\0"):
                decompressor = zlib.decompressobj(_GZIP_WINDOW)
        if not decompressor.eof:
            raise ProfileDataError(
                f"cannot read '{self.path}': the gzip data ends early, after {written:,} bytes of content; "
                "copy the file again, or record again"
            )


def _damaged(path: Path, error: zlib.error) -> ProfileDataError:
    return ProfileDataError(
        f"cannot read '{path}': damaged gzip data ({error}); copy the file again, or record again"
    )
