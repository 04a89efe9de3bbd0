"""Profiles that can be read, one after the other: one damaged file does not stop a command for a job."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepcontext.errors import ProfileDataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepcontext.profiler.model.job.loading import Refused
    from deepcontext.profiler.model.profile import Profile


@dataclass(slots=True)
class Readable:
    """Reads profiles and names unreadable files on standard error.

    Attributes:
        read: number of profiles.
        refused: files that cannot be read.
    """

    read: int = 0
    refused: list[Refused] = field(default_factory=list)

    def profiles(self, names: Sequence[str]) -> Iterator[Profile]:
        """Yield the profiles of these files.

        Raises:
            UserError: the only file cannot be read.
            ProfileDataError: the same, because it is damaged.
        """
        from deepcontext.profiler.importing.opening import load, load_or_refuse  # noqa: PLC0415  numpy
        from deepcontext.profiler.model.job.loading import Refused  # noqa: PLC0415

        if len(names) == 1 and not self.read and not self.refused:
            self.read += 1
            yield load(names[0])
            return
        for name in names:
            profile = load_or_refuse(name)
            if isinstance(profile, Refused):
                self.refused.append(profile)
                print(f"[deepcontext] left out: {profile.reason}", file=sys.stderr)
            else:
                self.read += 1
                yield profile

    def check(self) -> None:
        """Check that something was read.

        Raises:
            ProfileDataError: nothing could be read.
        """
        if not self.read and self.refused:
            raise ProfileDataError(f"no profile can be read; the first: {self.refused[0].reason}")
