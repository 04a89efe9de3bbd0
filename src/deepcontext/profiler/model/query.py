"""Select nodes of a profile and sum their metrics; a query reads like the question.

    profile.query().kind("operator").under("Optimizer.step*").phase("forward").total("host_time_ns")

Does not format values. Every call returns a new query that selects fewer nodes; patterns are
matched once for each distinct string, everything else works on whole columns.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import HOST_TIME_NS, Aggregation
from deepcontext.profiler.model.query_table import table_of

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from deepcontext.profiler.format.frame import Frame
    from deepcontext.profiler.model.profile_model import ProfileModel
    from deepcontext.profiler.model.query_table import Grouping, TableRow

    Mask = npt.NDArray[np.bool_]
    Nodes = npt.NDArray[np.intp]

_COMPARISONS: Mapping[str, Callable[[Any, int | float], Any]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}
_VALUES = ("exclusive", "inclusive", "count")
_Member = TypeVar("_Member", bound="enum.IntEnum")


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node of a profile.

    Attributes:
        profile: the node's profile.
        id: the node's id.
    """

    profile: ProfileModel
    id: int

    @property
    def frame(self) -> Frame:
        """The node's frame."""
        return self.profile.frame(self.id)

    @property
    def path(self) -> tuple[Frame, ...]:
        """Frames from the root down to this node."""
        return self.profile.path(self.id)

    @property
    def phase(self) -> Phase:
        """The phase that the node works for."""
        return Phase(int(self.profile.tree.phase[self.id]))

    def value(self, metric: str = HOST_TIME_NS.name, *, inclusive: bool = False) -> int:
        """Return a metric of this node in its unit, with or without its descendants."""
        return int(
            _values(self.profile, metric, "inclusive" if inclusive else "exclusive")[self.id]
        )


class Query:
    """Nodes of a profile, selected step by step; immutable.

    In patterns ``*`` matches any characters and ``?`` one character; a pattern without wildcards
    must match the whole text. Several patterns, kinds or phases in one call mean "any of these",
    several calls "all of these".

    Args:
        profile: profile whose nodes are selected.
        mask: which nodes are selected, shape (nodes,); None selects all.
    """

    def __init__(self, profile: ProfileModel, mask: Mask | None = None) -> None:
        self._profile = profile
        self._mask = np.ones(len(profile.tree), np.bool_) if mask is None else mask

    @property
    def profile(self) -> ProfileModel:
        """Profile whose nodes are selected."""
        return self._profile

    # -- select

    def kind(self, *kinds: str | FrameKind) -> Query:
        """Keep nodes whose frame is of one of these kinds, for example ``"operator"``."""
        wanted = [_member(FrameKind, "frame kind", kind) for kind in kinds]
        return self._keep_frames(np.isin(self._profile.frames.kind, wanted))

    def phase(self, *phases: str | Phase) -> Query:
        """Keep nodes that work for one of these phases, for example ``"backward"``."""
        is_wanted = np.zeros(np.iinfo(np.uint8).max + 1, np.bool_)
        is_wanted[[_member(Phase, "phase", phase) for phase in phases]] = True
        return self._keep(is_wanted.take(self._profile.tree.phase))

    def name(self, *patterns: str) -> Query:
        """Keep nodes whose frame's name matches, for example ``"aten::*mm*"``."""
        return self._keep_frames(self._named(patterns))

    def file(self, *patterns: str) -> Query:
        """Keep nodes whose frame's file matches: the whole path, or without "/" the file name."""
        whole = _matcher([pattern for pattern in patterns if "/" in pattern])
        last = _matcher([pattern for pattern in patterns if "/" not in pattern])
        return self._keep_frames(
            self._matching(
                self._profile.frames.file,
                lambda file: bool(file) and (whole(file) or last(file.rpartition("/")[2])),
            )
        )

    def line(self, *lines: int) -> Query:
        """Keep nodes whose frame is at one of these 1-based source lines."""
        return self._keep_frames(np.isin(self._profile.frames.line, lines))

    def module(self, *patterns: str) -> Query:
        """Keep matching module nodes and everything below them.

        A pattern is matched against the module's path in its model (``"encoder.*"``) and against
        the whole name (``"Linear '*'"``).
        """
        matches = _matcher(patterns)
        matching = self._matching(
            self._profile.frames.name, lambda name: matches(name) or matches(_instance_path(name))
        )
        frames = matching & (self._profile.frames.kind == FrameKind.MODULE)
        modules = frames[self._profile.tree.frame]
        return self._keep(self._profile.tree.at_or_below(modules))

    def under(self, *above: str | Query) -> Query:
        """Keep nodes below a frame whose name matches, or below a node of another query.

        The matching nodes themselves are kept only if they lie below another matching node.
        """
        patterns = [each for each in above if isinstance(each, str)]
        mask = np.zeros(len(self._mask), np.bool_)
        if patterns:
            mask = self._named(patterns).take(self._profile.tree.frame)
        for each in above:
            if isinstance(each, Query):
                mask |= self._same_profile(each).mask()
        return self._keep(self._profile.tree.below(mask))

    def where(self, *predicates: Callable[[Nodes], npt.ArrayLike], **bounds: float) -> Query:
        """Keep nodes by their values.

        Args:
            predicates: called with the ids selected so far, shape (selected,); each returns which
                ids to keep, shape (selected,), bool.
            bounds: ``metric__comparison=value`` with gt, ge, lt, le, eq or ne, in the metric's
                unit: ``host_time_ns__gt=1_000_000``. Compares exclusive values; other values are
                named in between: ``host_time_ns__inclusive__ge=...``,
                ``host_time_ns__count__gt=...``.

        Raises:
            QueryError: unknown metric or comparison, or a predicate returns another shape.
        """
        query = self
        for name, bound in bounds.items():
            query = query._keep(_bounded(self._profile, name, bound))
        for predicate in predicates:
            nodes = query.nodes()
            kept = np.asarray(predicate(nodes))
            if kept.shape != nodes.shape or kept.dtype != np.bool_:
                raise QueryError(
                    f"a predicate of where() must return one bool for each of the {len(nodes)} "
                    f"nodes, found shape {kept.shape} of {kept.dtype}"
                )
            mask = np.zeros(len(self._mask), np.bool_)
            mask[nodes[kept]] = True
            query = Query(self._profile, mask)
        return query

    # -- answer

    def mask(self) -> Mask:
        """Return which nodes are selected, shape (nodes,), bool; a view, not to be written to."""
        return self._mask

    def nodes(self) -> Nodes:
        """Return the ids of the selected nodes in ascending order, shape (selected,), intp."""
        return np.flatnonzero(self._mask)

    def count(self) -> int:
        """Return the number of selected nodes."""
        return int(np.count_nonzero(self._mask))

    def total(self, metric: str = HOST_TIME_NS.name, *, inclusive: bool = False) -> int:
        """Return the sum of a metric over the selected nodes; the maximum of a `MAX` metric.

        Args:
            metric: metric name.
            inclusive: with descendants; each node counts once, even if selected nodes nest.

        Raises:
            QueryError: the profile has no such metric.
        """
        selected = self._profile.tree.outermost(self._mask) if inclusive else self._mask
        values = _values(self._profile, metric, "inclusive" if inclusive else "exclusive")[selected]
        if self._profile.metrics[metric].descriptor.aggregation is Aggregation.MAX:
            return int(values.max(initial=0))
        return int(values.sum())

    def table(
        self, metric: str = HOST_TIME_NS.name, by: Grouping = "name", *, limit: int | None = None
    ) -> list[TableRow]:
        """Group the selected nodes and return the groups, largest exclusive value first.

        Args:
            metric: metric name.
            by: ``name``: name and kind of the frame; ``line``: source line of the nearest Python
                frame at or above the node; ``module``: nearest module instance at or above the
                node; ``path``: one row for each node.
            limit: number of rows at most; None gives all rows.

        Raises:
            QueryError: unknown metric or grouping.
        """
        return table_of(self._profile, self._mask, metric, by, limit)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[NodeView]:
        return (NodeView(self._profile, node) for node in self.nodes().tolist())

    # -- steps shared by the above

    def _keep(self, mask: Mask) -> Query:
        return Query(self._profile, self._mask & mask)

    def _keep_frames(self, frames: Mask) -> Query:
        return self._keep(frames.take(self._profile.tree.frame))

    def _named(self, patterns: Iterable[str]) -> Mask:
        return self._matching(self._profile.frames.name, _matcher(patterns))

    def _matching(self, column: npt.NDArray[np.uint32], matches: Callable[[str], bool]) -> Mask:
        """Return which frames have a string in `column` that matches, shape (frames,)."""
        strings = self._profile.frames.strings
        is_match = np.zeros(len(strings), np.bool_)
        for index in np.unique(column):
            is_match[index] = matches(strings[int(index)])
        return is_match[column]

    def _same_profile(self, other: Query) -> Query:
        if other._profile is not self._profile:
            raise QueryError("under() was given a query of another profile")
        return other


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    # Not fnmatch, because "[" is common in names and must match literally.
    parts = [re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".") for pattern in patterns]
    if not parts:
        return lambda _: False
    expression = re.compile("|".join(f"(?:{part})" for part in parts), re.DOTALL)
    return lambda text: expression.fullmatch(text) is not None


def _instance_path(name: str) -> str:
    """Return ``encoder.fc1`` of ``Linear 'encoder.fc1'``."""
    return name.partition("'")[2].removesuffix("'")


def _member(members: type[_Member], what: str, wanted: str | _Member) -> _Member:
    if isinstance(wanted, members):
        return wanted
    try:
        return members[str(wanted).upper()]
    except KeyError:
        known = ", ".join(member.name.lower() for member in members)
        raise QueryError(f"unknown {what} '{wanted}'; known: {known}") from None


def _values(profile: ProfileModel, metric: str, which: str) -> npt.NDArray[np.int64]:
    match which:
        case "exclusive":
            return profile.exclusive(metric)
        case "inclusive":
            return profile.inclusive(metric)
        case _:
            return profile.counts(metric)


def _bounded(profile: ProfileModel, name: str, bound: float) -> Mask:
    metric, *middle = name.split("__")
    comparison = middle.pop() if middle else ""
    which = middle[0] if middle else "exclusive"
    if comparison not in _COMPARISONS or len(middle) > 1 or which not in _VALUES:
        raise QueryError(
            f"where() cannot read '{name}'; write metric__comparison or metric__value__comparison "
            f"with a value of {', '.join(_VALUES)} and a comparison of {', '.join(_COMPARISONS)}"
        )
    return np.asarray(_COMPARISONS[comparison](_values(profile, metric, which), bound))
