"""The profile as users see it: load, save, hot paths, queries.

Columns and derived values are in `profile_model.py`, the file format is in `store/`.
"""

from __future__ import annotations

import dataclasses
import reprlib
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deepcontext.errors import QueryError, UserError
from deepcontext.profiler.format import writing
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.format.node_sections import WINDOWS
from deepcontext.profiler.model import nested, store
from deepcontext.profiler.model.exemplars import ExemplarTable
from deepcontext.profiler.model.profile_model import ProfileModel
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.model.windows import WindowKind, WindowTable
from deepcontext.profiler.model.within import profile_within

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from typing import Self

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.exemplars import Exemplar, Lane
    from deepcontext.profiler.model.windows import Window


@dataclass(frozen=True, slots=True)
class HotPath:
    """One call path and its cost.

    Attributes:
        node: id of the path's last node.
        frames: frames from the root down, the root left out.
        count: number of events at the node.
        exclusive: the metric without descendants, in its unit.
        inclusive: the metric with descendants, in its unit.
        share: the ranking value as a share of the whole profile, 0 to 1.
    """

    node: int
    frames: tuple[Frame, ...]
    count: int
    exclusive: int
    inclusive: int
    share: float


class Profile(ProfileModel):
    """One calling context tree with its metrics; attributes as in `ProfileModel`.

    Attributes:
        html_view: makes the page that a notebook shows; set by the facade, because `ui` is above
            this layer.
    """

    html_view: ClassVar[Callable[[Profile], str] | None] = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a profile file.

        Raises:
            UserError: there is no such file, or it cannot be opened.
            ProfileDataError: the file is not a profile, is damaged, or is too new for this build.
        """
        where = Path(path)
        try:
            # Opening a pipe or reading a device might never end.
            mode = where.stat().st_mode
            if not stat.S_ISREG(mode):
                found = "it is a folder" if stat.S_ISDIR(mode) else "not a regular file"
                raise UserError(f"cannot read '{path}': {found}; name a profile (*.dcprof)")
            content = where.read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"cannot read '{where}': {reason}; check the path") from error
        return dataclasses.replace(cls.from_bytes(content, source=str(where)), source=str(where))

    @classmethod
    def from_bytes(cls, content: bytes, *, source: str = "<memory>") -> Self:
        """Read a profile from the content of a file.

        Args:
            content: the whole file.
            source: name of the content in errors.

        Raises:
            ProfileDataError: the content is not a profile, is damaged, or is too new for this build.
        """
        model = store.read_profile(content, source)
        return cls(model.frames, model.tree, model.metrics, model.run, model.trust, model.sections)

    def __repr__(self) -> str:
        """Return one line that fits a terminal, whatever the profile holds."""
        run = self.run
        program = run.script or " ".join(run.command) or "a program"
        texts = [
            f"<Profile of {reprlib.repr(program)}: {run.wall_ns / 1e9:.3g} s",
            f"{len(self.tree):,} nodes",
        ]
        return ", ".join(texts + [f"file {self.source!r}"] * bool(self.source)) + ">"

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the profile to a file, replacing an older profile in one step.

        Args:
            path: file to write; a device or a pipe is written to directly.
            force: also replace a file that is not a profile.

        Raises:
            UserError: the path holds a file that is not a profile, its folder does not exist, or
                writing is not permitted.
            EnvironmentProblem: the machine failed to write, for example because the disk is full;
                the old file is kept.
        """
        writing.write(self.to_bytes(), path, writing.PROFILE, force=force)

    def to_bytes(self) -> bytes:
        """Return the content of the file that `save` would write."""
        return store.encode_profile(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole profile as dictionaries, lists, strings and numbers.

        The keys: ``run`` and ``trust`` as their classes name the fields; ``metrics`` lists the descriptors;
        ``sections`` holds payloads in base64; ``tree`` is the root. A node has ``id``, ``kind``, ``name``,
        ``file``, ``line``, ``phase``, ``metrics`` (the stored, exclusive row by metric name, in the metric's
        unit) and ``children``. A tree is as deep as the program's stack: `json.dumps` needs a recursion limit
        of about three times its depth.
        """
        return nested.profile_to_dict(self)

    def with_section(self, name: str, payload: bytes) -> Self:
        """Return the same profile with a named payload added or replaced."""
        return dataclasses.replace(self, sections={**self.sections, name: payload})

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that the run was cut into; empty for older profiles and without steps (of each rank).

        Raises:
            ProfileDataError: the section of the windows is damaged.
        """
        return self.windows_after()

    def windows_after(self, warmup: int | None = None) -> tuple[Window, ...]:
        """Return the windows.

        Args:
            warmup: number of steps before the steady state; None to tell warm-up by the time of steps.
        """
        table = self._window_table()
        return () if table is None else table.windows(warmup)

    def within(self, windows: Iterable[Window]) -> Self:
        """Return the profile of some of this profile's windows: the same tree with their sums.

        Values of single nodes, such as peaks, and extremes are those of the whole run, or absent; see
        `within.py`.

        Raises:
            QueryError: the profile has no such window.
            ProfileDataError: the section of the windows is damaged.
        """
        chosen, table = tuple(windows), self._window_table()
        known = {window.number for window in self.windows}
        if table is None or not chosen or not known >= {window.number for window in chosen}:
            raise QueryError(f"this profile has no such windows; it has {len(known)} windows")
        return profile_within(self, table, chosen)

    def steady(self, warmup: int | None = None) -> Self | None:
        """Return the profile of the steady windows, None where there are none; see `windows_after`."""
        steady = [each for each in self.windows_after(warmup) if each.kind is WindowKind.STEADY]
        return self.within(steady) if steady else None

    def undivided(self) -> Self:
        """Return the same profile without its windows, so that views show the whole run."""
        kept = {name: each for name, each in self.sections.items() if name != WINDOWS}
        return dataclasses.replace(self, sections=kept)

    @property
    def exemplars(self) -> tuple[Exemplar, ...]:
        """The steps that were kept whole; empty for older profiles, and without steps.

        Raises:
            ProfileDataError: the section of the steps is damaged.
        """
        table = self._exemplar_table()
        return () if table is None else table.exemplars

    def lanes(self, exemplar: Exemplar) -> tuple[Lane, ...]:
        """Return what each thread and each stream of a device did in one of `exemplars`.

        Raises:
            ProfileDataError: the section of the steps is damaged.
        """
        table = self._exemplar_table()
        return () if table is None else table.lanes(exemplar)

    def _exemplar_table(self) -> ExemplarTable | None:
        return self.once("exemplars", lambda: ExemplarTable.of(self))

    def _window_table(self) -> WindowTable | None:
        return self.once("windows", lambda: WindowTable.of(self))

    def _repr_html_(self) -> str | None:
        """Return the page that a notebook shows, None without the user interface."""
        html_view = type(self).html_view
        return None if html_view is None else html_view(self)

    def query(self) -> Query:
        """Return a query that selects every node."""
        return Query(self)

    def hot_paths(
        self, metric: str = HOST_TIME_NS.name, limit: int = 20, *, inclusive: bool = False
    ) -> tuple[HotPath, ...]:
        """Return the call paths with the largest cost, largest first.

        Args:
            metric: metric name.
            limit: number of paths at most; paths with a cost of 0 are left out.
            inclusive: rank by the inclusive value; every ancestor of a costly node then ranks high
                too.

        Raises:
            QueryError: the profile has no such metric; the message lists its metrics.
        """
        exclusive, whole, counts = (
            self.exclusive(metric),
            self.inclusive(metric),
            self.counts(metric),
        )
        ranking = whole[1:] if inclusive else exclusive[1:]
        # A stable sort keeps ties in tree order: the same profile always gives the same list.
        nodes = 1 + np.argsort(-ranking, kind="stable")[:limit]
        total = int(whole[0]) or 1
        return tuple(
            HotPath(
                node=node,
                frames=self.path(node)[1:],
                count=int(counts[node]),
                exclusive=int(exclusive[node]),
                inclusive=int(whole[node]),
                share=int(ranking[node - 1]) / total,
            )
            for node in nodes.tolist()
            if ranking[node - 1] > 0
        )
