"""The profiles that a page shows, and a cache of the trees made from them.

Invariant: an answer describes the version of the file that the page loaded; after the file changed
or disappeared, the answer is an error.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from deepcontext.errors import DeepContextError, QueryError
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.views.difference import Difference
from deepcontext.profiler.views.top_down import TopDown

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Sequence

    from deepcontext.profiler.views.options import TreeOptions

_TREES_KEPT: Final = 12
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
    """

    profile: Profile
    name: str
    version: str
    path: Path | None = None
    stamp: tuple[int, int] = (0, 0)

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
        profile = Profile.load(path)
        return cls(profile, path.name, _version(path.read_bytes()), path, stamp)

    @classmethod
    def of_memory(cls, profile: Profile, name: str) -> OpenProfile:
        """Open a profile that has no file."""
        return cls(profile, name, _version(profile.to_bytes()))


class OpenProfiles:
    """Profiles in the order of the command line.

    Args:
        profiles: the profiles to show.
        source_text: whether source files named in the profiles may be read.
    """

    def __init__(self, profiles: Sequence[OpenProfile], *, source_text: bool = True) -> None:
        self.source_text = source_text
        self._profiles = list(profiles)
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, object] = OrderedDict()

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

    def refresh(self) -> list[OpenProfile]:
        """Read changed files again, and return all profiles.

        Raises:
            GoneFileError: a file does not exist any more.
        """
        with self._lock:
            for index, opened in enumerate(self._profiles):
                if opened.path is not None and self._seen(opened) != opened.stamp:
                    read = OpenProfile.read(opened.path)
                    self._profiles[index] = replace(read, name=opened.name)
                    self._kept.clear()
            return list(self._profiles)

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
        if opened.path is not None and self._seen(opened) != opened.stamp:
            raise ChangedFileError(
                f"'{opened.path.name}' has changed since this page was loaded; reload the page"
            )
        return opened

    def tree(self, index: int, options: TreeOptions) -> TopDown:
        """Return a tree of a profile; the last trees are kept."""
        opened = self.get(index)
        shape = options.shape()
        view = self.keep(("tree", opened.version, shape), lambda: TopDown(opened.profile, shape))
        if options.phase is None:
            return view
        return self.keep(("tree", opened.version, options), lambda: view.counting(options.phase))

    def difference(self, options: TreeOptions) -> Difference:
        """Return the merged trees of the first two profiles.

        Raises:
            QueryError: only one profile is open.
        """
        if len(self._profiles) < 2:  # noqa: PLR2004  a difference has two sides
            raise QueryError("a difference needs two profiles: deepcontext view A.dcprof B.dcprof")
        before, after = self.tree(0, options), self.tree(1, options)
        key = ("difference", self.get(0).version, self.get(1).version, options)
        return self.keep(key, lambda: Difference(before, after))

    def keep(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return the value kept under a key, making it if it is missing."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast("Kept", self._kept[key])
            made = make()
            self._kept[key] = made
            while len(self._kept) > _TREES_KEPT:
                self._kept.popitem(last=False)
            return made

    @staticmethod
    def _seen(opened: OpenProfile) -> tuple[int, int]:
        path = opened.path or Path()
        try:
            return _stamp(path)
        except OSError as error:
            raise GoneFileError(
                f"'{path.name}' does not exist any more ({error.strerror}); restore it and reload "
                "the page"
            ) from error


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
