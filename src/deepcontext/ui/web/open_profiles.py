"""The profiles that a page shows, and the trees made from them that are worth keeping.

Invariant: an answer is of the version of the file that the page was told about; when the file
changes or goes, that is said instead.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
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
    """The file is not what it was when the page was loaded."""


class GoneFileError(DeepContextError):
    """The file is not there any more."""


@dataclass(frozen=True, slots=True)
class OpenProfile:
    """A profile and where it comes from.

    Attributes:
        profile: the profile.
        name: what the page calls it.
        version: hash of the content.
        path: its file, or None for a profile in memory.
        stamp: size and time of the file's last change, as it was read.
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
            UserError: it cannot be read.
            ProfileDataError: it is no profile.
        """
        # Taken before: a file replaced meanwhile is read again. A missing one is `load`'s to say.
        stamp = _stamp(path) if path.exists() else (0, 0)
        profile = Profile.load(path)
        return cls(profile, path.name, _version(path.read_bytes()), path, stamp)

    @classmethod
    def of_memory(cls, profile: Profile, name: str) -> OpenProfile:
        """Take a profile that has no file."""
        return cls(profile, name, _version(profile.to_bytes()))


class OpenProfiles:
    """Profiles in the order they were named.

    Args:
        profiles: what to show.
        source_text: whether the source files that they name may be read.
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
            UserError: one cannot be read.
            ProfileDataError: one is no profile.
        """
        profiles = [OpenProfile.read(Path(path)) for path in paths]
        return cls(profiles, source_text=source_text)

    def __len__(self) -> int:
        return len(self._profiles)

    def refresh(self) -> list[OpenProfile]:
        """Read again what has changed, and return all.

        Raises:
            GoneFileError: a file is not there any more.
        """
        with self._lock:
            for place, opened in enumerate(self._profiles):
                if opened.path is not None and self._seen(opened) != opened.stamp:
                    self._profiles[place] = OpenProfile.read(opened.path)
                    self._kept.clear()
            return list(self._profiles)

    def get(self, place: int) -> OpenProfile:
        """Return a profile as the page knows it.

        Raises:
            QueryError: there is none at this place.
            ChangedFileError: its file has changed since it was read.
            GoneFileError: its file is not there any more.
        """
        if place >= len(self._profiles):
            raise QueryError(f"no profile {place}: {len(self._profiles)} are open, counted from 0")
        opened = self._profiles[place]
        if opened.path is not None and self._seen(opened) != opened.stamp:
            raise ChangedFileError(
                f"'{opened.path.name}' has changed since this page was loaded; reload the page"
            )
        return opened

    def tree(self, place: int, options: TreeOptions) -> TopDown:
        """Return a tree of a profile; those asked for last are kept."""
        opened = self.get(place)
        shape = options.shape()
        view = self.keep(("tree", opened.version, shape), lambda: TopDown(opened.profile, shape))
        if options.phase is None:
            return view
        return self.keep(("tree", opened.version, options), lambda: view.counting(options.phase))

    def difference(self, options: TreeOptions) -> Difference:
        """Return the trees of the first two profiles in one.

        Raises:
            QueryError: only one profile is open.
        """
        if len(self._profiles) < 2:  # noqa: PLR2004  a difference has two sides
            raise QueryError("a difference needs two profiles: deepcontext view A.dcprof B.dcprof")
        before, after = self.tree(0, options), self.tree(1, options)
        key = ("difference", self.get(0).version, self.get(1).version, options)
        return self.keep(key, lambda: Difference(before, after))

    def keep(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what was made under a key, making it when it is not kept."""
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
                f"'{path.name}' is not there any more ({error.strerror}); put it back and reload "
                "the page"
            ) from error


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
