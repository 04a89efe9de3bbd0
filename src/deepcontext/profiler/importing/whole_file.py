"""The whole content of a file, under a ceiling, for formats that are small or cannot be read in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from deepcontext.profiler.importing.source_file import SourceFile

# A file is held in memory together with what is decoded from it.
MOST_BYTES: Final = 2 << 30


def content_of(file: SourceFile) -> bytes:
    """Return the content, decompressed.

    Raises:
        ProfileDataError: the file is larger than `MOST_BYTES`, or its compressed data is damaged.
    """
    parts, size = [], 0
    for chunk in file.chunks():
        size += len(chunk)
        if size > MOST_BYTES:
            raise ProfileDataError(
                f"cannot read '{file.path}': more than {MOST_BYTES >> 20:,} MiB of content, and this format "
                "is read as a whole; record a shorter part of the program"
            )
        parts.append(chunk)
    return b"".join(parts)


def json_of(file: SourceFile, kind: Any = Any) -> Any:
    """Return the content of a JSON file.

    Args:
        file: the file.
        kind: the type to decode, as msgspec knows types.

    Raises:
        ProfileDataError: it is no JSON of this type.
    """
    import msgspec  # noqa: PLC0415  other commands start without the decoder

    try:
        return msgspec.json.decode(content_of(file), type=kind, strict=False)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise damaged(file, error) from error


def damaged(file: SourceFile, error: object) -> ProfileDataError:
    """Return the error of a file whose content is not of its format."""
    text = " ".join(str(error).split())
    return ProfileDataError(
        f"cannot read '{file.path}': damaged content ({text}); copy the file again, or record again"
    )
