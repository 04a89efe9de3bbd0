"""The profiles that a page shows, read at once or on demand, and a cache of what was made from them.

Invariant: an answer describes the version of the file that the page loaded; after the file changed
or disappeared, the answer is an error.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from deepcontext.errors import DeepContextError, QueryError, UserError
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.windows import of_steps
from deepcontext.profiler.summaries.basis import Part, basis_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Sequence
    from typing import IO

    from deepcontext.ui.web.answers import JobAnswer

_ANSWERS_KEPT: Final = 12
_COPIED_AT_ONCE: Final = 1 << 20
_MADE_KEPT: Final = 16
# Profiles that the page compares: their table has 15 columns of numbers, and eight profiles of
# 1,000,000 nodes each take 1.1 GB of memory, or 2.3 GB if they share no call path.
MOST_COMPARED: Final = 8
Kept = TypeVar("Kept")


class ChangedFileError(DeepContextError):
    """The file changed after the page was loaded."""


class GoneFileError(DeepContextError):
    """The file does not exist any more."""


@dataclass(frozen=True, slots=True)
class OpenProfile:
    """A profile and its file.

    Attributes:
        profile: the profile.
        name: name of the profile on the page.
        version: hash of the content.
        path: its file, or None for a profile in memory.
        stamp: size and modification time of the file when it was read.
        steps: the first and the last step of the part to show; None for the usual part.
    """

    profile: Profile
    name: str
    version: str
    path: Path | None = None
    stamp: tuple[int, int] = (0, 0)
    steps: tuple[int, int] | None = None

    @classmethod
    def read(cls, path: Path) -> OpenProfile:
        """Read a file.

        Raises:
            UserError: the file cannot be read.
            ProfileDataError: the file is not a profile.
        """
        # Taken before reading, so that a file replaced meanwhile is read again. `load` reports a
        # missing file.
        stamp = _stamp(path) if path.exists() else (0, 0)
        profile = load(path)
        return cls(profile, path.name, _version_of(path), path, stamp)

    @classmethod
    def of_stream(cls, content: IO[bytes], name: str) -> OpenProfile:
        """Read what somebody sends; nothing of it stays on the disk.

        Raises:
            UserError: it cannot be read, or there is no room for it.
        """
        name = Path(name.replace("\0", "")).name or "unnamed"
        with tempfile.TemporaryDirectory(prefix="deepcontext-") as folder:
            # Formats are recognised by content.
            path = Path(folder) / "file"
            try:
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file, _COPIED_AT_ONCE)
                return replace(cls.read(path), name=name, path=None)
            except DeepContextError as error:
                raise UserError(str(error).replace(str(path), name)) from error
            except OSError as error:
                raise UserError(
                    f"cannot keep '{name}' in '{tempfile.gettempdir()}' to read it: {error.strerror}; "
                    "name it on the command line: deepcontext view FILE"
                ) from error

    @classmethod
    def of_memory(cls, profile: Profile, name: str) -> OpenProfile:
        """Open a profile that has no file."""
        return cls(profile, name, _version(profile.to_bytes()))


@dataclass(frozen=True, slots=True)
class Deferred:
    """A profile that is read, or made from several profiles, at its first use.

    Attributes:
        name: name of the profile on the page.
        make: returns the profile.
    """

    name: str
    make: Callable[[], OpenProfile]


Entry = TypeVar("Entry", bound=OpenProfile | Deferred)


@dataclass(frozen=True, slots=True)
class Contents:
    """Profiles as they are read together.

    Attributes:
        profiles: the profiles.
        jobs: the jobs that the profiles are of.
        compared: how many of the first profiles are compared.
    """

    profiles: Sequence[OpenProfile | Deferred]
    jobs: Sequence[JobAnswer] = ()
    compared: int = MOST_COMPARED


class Origin(Protocol):
    """Where contents come from: run directories change while a job runs."""

    def read(self) -> Contents:
        """Read what is there now."""
        ...

    def changed(self) -> str:
        """Return the name of what has changed since it was read, "" for nothing."""
        ...


def as_it_is(profile: Profile) -> Profile:
    """Return the profile, whose basis is shown."""
    return profile


class OpenProfiles:
    """Profiles in the order of the command line.

    Args:
        profiles: the profiles to show.
        source_text: whether source files named in the profiles may be read.
        jobs: the jobs that the profiles are of.
        compared: how many of the first profiles are compared, at most `MOST_COMPARED`.
        peaks: file with the peaks of the machine of the runs; None for those that are known here.
        part_of: returns the part of a profile to show. A compared run without a steady state makes all show
            whole runs, because a step cannot be compared with a run.

    Attributes:
        origin: where the profiles come from, if more can come.
    """

    origin: Origin | None = None

    def __init__(
        self,
        profiles: Sequence[OpenProfile | Deferred],
        *,
        source_text: bool = True,
        jobs: Sequence[JobAnswer] = (),
        compared: int = MOST_COMPARED,
        peaks: str | None = None,
        part_of: Callable[[Profile], Profile] = as_it_is,
    ) -> None:
        self.source_text = source_text
        self.peaks = peaks
        self._wanted_part = part_of
        self._lock = threading.RLock()
        self._made: OrderedDict[int, OpenProfile] = OrderedDict()
        # Versions that the page has seen of profiles on demand, which may have been dropped since.
        self._versions: dict[int, str] = {}
        self._kept: OrderedDict[Hashable, object] = OrderedDict()
        self._added: list[OpenProfile] = []
        self._hold(Contents(profiles, jobs, compared))

    def _hold(self, contents: Contents) -> None:
        self.jobs = tuple(contents.jobs)
        self.compared = min(contents.compared, len(contents.profiles), MOST_COMPARED)
        self._part_of = self._wanted_part
        self._given = [*contents.profiles, *self._added]
        self._profiles = self._all_shown()
        self._made.clear()
        self._versions.clear()
        self._kept.clear()

    @classmethod
    def open(
        cls, paths: Sequence[str | os.PathLike[str]], *, source_text: bool = True
    ) -> OpenProfiles:
        """Read files.

        Raises:
            UserError: a file cannot be read.
            ProfileDataError: a file is not a profile.
        """
        profiles = [OpenProfile.read(Path(path)) for path in paths]
        return cls(profiles, source_text=source_text)

    def __len__(self) -> int:
        return len(self._profiles)

    def loaded(self) -> list[int]:
        """Return the profiles that are read already and stay in memory."""
        return [n for n, each in enumerate(self._profiles) if isinstance(each, OpenProfile)]

    def refresh(self) -> list[OpenProfile | Deferred]:
        """Read changed files again, and return all profiles; those on demand only where they are new.

        Raises:
            GoneFileError: a file does not exist any more.
        """
        with self._lock:
            if self.origin is not None and self.origin.changed():
                self._hold(self.origin.read())
            for index, opened in enumerate(self._profiles):
                if isinstance(opened, OpenProfile) and not self._is_current(opened):
                    read = OpenProfile.read(opened.path or Path())
                    given = self._given[index]
                    steps = given.steps if isinstance(given, OpenProfile) else None
                    self._given[index] = replace(read, name=given.name, steps=steps)
                    self._profiles[index] = self._shown(self._given[index])
                    self._kept.clear()
            # Whether a profile made of several files is current could only be seen from these
            # files.
            for index, made in list(self._made.items()):
                if made.path is None or not made.path.exists() or not self._is_current(made):
                    del self._made[index]
            self._versions = {index: made.version for index, made in self._made.items()}
            return [self._made.get(n, each) for n, each in enumerate(self._profiles)]

    def check(self) -> None:
        """Check that no run directory has changed since it was read.

        Raises:
            ChangedFileError: one has.
        """
        if self.origin is not None and (name := self.origin.changed()):
            raise _changed(name)

    def get(self, index: int) -> OpenProfile:
        """Return a profile in the version that the page loaded.

        Raises:
            QueryError: no profile has this index.
            ChangedFileError: the file has changed since it was read.
            GoneFileError: the file does not exist any more.
        """
        if index >= len(self._profiles):
            raise QueryError(f"no profile {index}: {len(self._profiles)} are open, counted from 0")
        opened = self._profiles[index]
        if isinstance(opened, Deferred):
            opened = self._on_demand(index, opened)
        if opened.path is not None and not self._is_current(opened):
            raise _changed(opened.path.name)
        return opened

    def _on_demand(self, index: int, deferred: Deferred) -> OpenProfile:
        with self._lock:
            if index not in self._made:
                made = self._shown(replace(deferred.make(), name=deferred.name))
                if self._versions.setdefault(index, made.version) != made.version:
                    raise _changed(made.name)
                self._made[index] = made
            self._made.move_to_end(index)
            while len(self._made) > _MADE_KEPT:
                self._made.popitem(last=False)
            return self._made[index]

    def add(self, opened: OpenProfile) -> int:
        """Open one more profile, and return its index; it is compared if all are and few enough.

        A part of a run is compared only where all profiles are shown as means of a step.
        """
        with self._lock:
            self._added.append(opened)
            self._given.append(opened)
            compared = [*self._profiles[: self.compared], self._shown(opened)]
            is_alike = opened.steps is None or all(
                isinstance(each, OpenProfile) and basis_of(each.profile).steps for each in compared
            )
            if is_alike and self.compared == len(self._profiles) < MOST_COMPARED:
                self.compared += 1
            self._profiles = self._all_shown()
            self._kept.clear()
            return len(self._profiles) - 1

    def add_steps(self, index: int, first: int, last: int) -> int:
        """Open the windows of a profile that have these steps, beside it; return their index.

        Raises:
            QueryError: the profile has no such steps, or no windows.
            ChangedFileError: the file has changed since it was read.
            GoneFileError: the file does not exist any more.
        """
        opened, given = self.get(index), self._given[index]
        if isinstance(given, OpenProfile):
            opened = given
        windows = of_steps(opened.profile.windows, first, last)
        if not windows:
            raise QueryError(
                f"'{opened.name}' has no window of steps {first} to {last}: no steps were found in the "
                "program (or in a rank), or the profile is of an older version"
            )
        part = replace(opened, steps=(windows[0].first_step, windows[-1].last_step))
        with self._lock:
            return self._given.index(part) if part in self._given else self.add(part)

    def _all_shown(self) -> list[OpenProfile | Deferred]:
        shown = [self._shown(each) for each in self._given]
        opened = [each for each in shown[: self.compared] if isinstance(each, OpenProfile)]
        if {Part.STEADY, Part.RUN} <= {basis_of(each.profile).part for each in opened}:
            self._part_of = Profile.undivided
            shown = [self._shown(each) for each in self._given]
        return shown

    def _shown(self, entry: Entry) -> Entry:
        if isinstance(entry, Deferred):
            return entry
        # Of a file that was written again, such a part may be gone.
        if entry.steps and (windows := of_steps(entry.profile.windows, *entry.steps)):
            first, last = windows[0].first_step, windows[-1].last_step
            return replace(
                entry,
                profile=entry.profile.within(windows),
                name=f"{entry.name}, steps {first} to {last}",
                version=f"{entry.version}.{first}-{last}",
            )
        return replace(entry, profile=self._part_of(entry.profile))

    def keep(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return the value kept under a key, making it if it is missing."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast("Kept", self._kept[key])
            made = make()
            self._kept[key] = made
            while len(self._kept) > _ANSWERS_KEPT:
                self._kept.popitem(last=False)
            return made

    @staticmethod
    def _is_current(opened: OpenProfile) -> bool:
        path = opened.path
        if path is None:
            return True
        try:
            return _stamp(path) == opened.stamp
        except OSError as error:
            raise GoneFileError(
                f"'{path.name}' does not exist any more ({error.strerror}); restore it and reload "
                "the page"
            ) from error


def _changed(name: str) -> ChangedFileError:
    return ChangedFileError(f"'{name}' has changed since this page was loaded; reload the page")


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _version_of(path: Path) -> str:
    """Return the version of a file without holding it: traces of other tools have gigabytes."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
