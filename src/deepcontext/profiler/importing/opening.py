"""Opens what a user has: a profile, or a file of another tool that is read into one."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext.errors import ProfileDataError, UserError
from deepcontext.profiler.format import schema
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.importing.collapsed import CollapsedReader
from deepcontext.profiler.importing.kineto.reader import KinetoReader
from deepcontext.profiler.importing.nsight.reader import NsightSystemsReader
from deepcontext.profiler.importing.pprof import PprofReader
from deepcontext.profiler.importing.proton import ProtonReader
from deepcontext.profiler.importing.rocprof import RocprofReader
from deepcontext.profiler.importing.source_file import SourceFile
from deepcontext.profiler.importing.speedscope import SpeedscopeReader
from deepcontext.profiler.importing.whole_file import damaged
from deepcontext.profiler.importing.xplane import XPlaneReader
from deepcontext.profiler.model.job.loading import Refused
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.trust import READ_FROM, CollectorReport, TrustReport

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.importing.reader import Contents, Reader

# In this order a file is offered to them.
READERS: Final[tuple[Reader, ...]] = (
    RocprofReader(),
    SpeedscopeReader(),
    KinetoReader(),
    NsightSystemsReader(),
    ProtonReader(),
    XPlaneReader(),
    PprofReader(),
    CollapsedReader(),
)


# What comes of a field that is missing, or whose value is of another type than the format has.
_UNEXPECTED: Final = (
    *(AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError, csv.Error),
)


def load(path: str | os.PathLike[str]) -> Profile:
    """Return the profile of a file: of a profile, or of a file of another tool.

    Raises:
        UserError: there is no such file, or it cannot be opened.
        ProfileDataError: the file is of no known format, is damaged, or is too new for this build.
    """
    file = SourceFile.open(Path(path))
    if file.head.startswith(schema.MAGIC) and not file.is_compressed:
        return Profile.load(path)
    for reader in READERS:
        if reader.recognises(file.head):
            try:
                return _profile(reader.read(file), reader, file)
            except _UNEXPECTED as error:
                raise damaged(file, repr(error)) from error
    try:
        return Profile.from_bytes(file.head, source=str(path))
    except ProfileDataError as error:
        known = ", ".join(reader.name for reader in READERS)
        raise ProfileDataError(
            f"{error}; files of other tools that can be read: {known}"
        ) from error


def load_or_refuse(path: str) -> Profile | Refused:
    """Return the profile of a file, or why it cannot be read."""
    try:
        return load(path)
    except (ProfileDataError, UserError) as error:
        return Refused(path, str(error))


def foreign_files(folder: str | os.PathLike[str]) -> list[str]:
    """Return the files of other tools in a folder without profiles, by name: usually one a rank."""
    try:
        found = sorted(path for path in Path(folder).iterdir() if path.is_file())
    except OSError:
        return []
    if any(path.suffix == ".dcprof" for path in found):
        return []
    return [str(path) for path in found if is_foreign(path)]


@contextlib.contextmanager
def as_profiles(names: Sequence[str]) -> Iterator[list[str]]:
    """Give the names of profiles with the content of files, for those that only read profiles.

    Files of other tools are read into profiles in a temporary folder, one after the other.

    Raises:
        UserError, ProfileDataError: as `load`.
    """
    with tempfile.TemporaryDirectory(prefix="deepcontext-") as folder:
        result = []
        for number, name in enumerate(names):
            if is_foreign(name):
                profile = load(name)
                name = str(Path(folder, f"{number:06d}.dcprof"))  # noqa: PLW2901
                profile.save(name)
            result.append(name)
        yield result


def is_foreign(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is one of another tool; False where it cannot be read."""
    try:
        file = SourceFile.open(Path(path))
    except Exception:  # noqa: BLE001  reading it says what is wrong
        return False
    return any(reader.recognises(file.head) for reader in READERS)


def _profile(contents: Contents, reader: Reader, file: SourceFile) -> Profile:
    built = contents.builder.finish()
    reading = contents.reading
    cut = contents.builder.cut
    counts = dict(reading.counts) | {"nodes": len(built.tree), "paths_cut": cut}
    read = CollectorReport(
        READ_FROM,
        Status.RAN,
        details={"file": file.path.name, "format": reader.name, "producer": reading.producer}
        | {name: f"{count:,}" for name, count in reading.counts.items()}
        | {name: text for name, text in reading.details.items() if text},
    )
    notes = reading.notes
    if cut:
        text = f"the tree has reached {len(built.tree):,} nodes: {cut:,} deeper paths are counted above"
        notes += (text,)
    profile = Profile(
        frames=built.frames,
        tree=built.tree,
        metrics=built.metrics,
        run=contents.run,
        trust=TrustReport((read, *reading.parts), counts, None, notes),
        sections=dict(contents.sections) | contents.builder.sections(built),
    )
    return dataclasses.replace(profile, source=str(file.path))
