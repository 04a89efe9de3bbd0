"""The page's questions, read from the query part of an address."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

from deepcontext.errors import QueryError
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.metric import HOST_TIME_NS
from deepcontext.profiler.views.layers import OPTIONAL_LAYERS, Layer
from tests.ui.oracle.options import Edit, TreeOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

FlameKind = Literal["top_down", "bottom_up", "callers", "callees", "difference"]
_FLAME_KINDS: Final[tuple[str, ...]] = get_args(FlameKind)
_NOT_GIVEN: Final = -1
DEFAULT_PX: Final = 1536
_MOST_PX: Final = 16_384
_MOST_EDITS: Final = 100


@dataclass(frozen=True, slots=True)
class TreeQuestion:
    """Which tree of which profile, and which cost.

    Attributes:
        file: index of the profile among the open profiles.
        metric: key of a measure.
        options: what the tree shows.
    """

    file: int = 0
    metric: str = HOST_TIME_NS.name
    options: TreeOptions = field(default_factory=TreeOptions)

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> TreeQuestion:
        """Read the question.

        Raises:
            QueryError: a value does not exist.
        """
        edits = [edit for edit in query.get("edits", "").split(",") if edit]
        if len(edits) > _MOST_EDITS:
            raise QueryError(f"found {len(edits)} edits, at most {_MOST_EDITS} are possible")
        return cls(
            file=number(query, "file", 0),
            metric=query.get("metric", HOST_TIME_NS.name),
            options=TreeOptions(
                hidden=frozenset(
                    _layer(name) for name in query.get("hidden", "").split(",") if name
                ),
                library=_flag(query, "library"),
                by_line=_flag(query, "lines"),
                phase=_phase(query.get("phase", "")),
                pivot=query.get("pivot", "thread"),
                edits=tuple(Edit.parse(edit) for edit in edits),
            ),
        )


@dataclass(frozen=True, slots=True)
class FlameQuestion:
    """Which part of a tree to draw.

    Attributes:
        tree: which tree.
        kind: direction of the tree.
        root: node of the profile to zoom in to, or -1 for the whole tree.
        function: frame of the function whose callers or callees are wanted, or -1.
        files: the profiles of a difference.
        normalize: scale all profiles of a difference to the total of the first.
        px: width of the drawing in pixels.
    """

    tree: TreeQuestion
    kind: FlameKind = "top_down"
    root: int = _NOT_GIVEN
    function: int = _NOT_GIVEN
    files: tuple[int, ...] = (0, 1)
    normalize: bool = False
    px: int = DEFAULT_PX

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> FlameQuestion:
        """Read the question.

        Raises:
            QueryError: a value does not exist.
        """
        wanted = query.get("kind", "top_down")
        kind = next((each for each in get_args(FlameKind) if each == wanted), None)
        if kind is None:
            raise QueryError(f"no view '{wanted}'; known: {', '.join(_FLAME_KINDS)}")
        function = number(query, "function", _NOT_GIVEN)
        if kind in {"callers", "callees"} and function == _NOT_GIVEN:
            raise QueryError(f"the view '{kind}' needs the number of a frame as 'function'")
        return cls(
            tree=TreeQuestion.of_query(query),
            kind=kind,
            root=number(query, "root", _NOT_GIVEN),
            function=function,
            files=tuple(int(file) for file in query.get("files", "0,1").split(",")),
            normalize=_flag(query, "normalize"),
            px=min(max(number(query, "px", DEFAULT_PX), 1), _MOST_PX),
        )


def number(query: Mapping[str, str], name: str, default: int) -> int:
    """Return a whole number of at least 0 (or the default).

    Raises:
        QueryError: the text is not a whole number.
    """
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise QueryError(f"'{name}' must be a whole number, found '{text[:40]}'")
    return int(text)


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "")
    if text not in {"", "0", "1"}:
        raise QueryError(f"'{name}' must be 0 or 1, found '{text[:40]}'")
    return text == "1"


def _layer(name: str) -> Layer:
    for layer in OPTIONAL_LAYERS:
        if layer.label == name:
            return layer
    known = ", ".join(layer.label for layer in OPTIONAL_LAYERS)
    raise QueryError(f"no layer '{name}'; known: {known}")


def _phase(name: str) -> Phase | None:
    if not name:
        return None
    for phase in Phase:
        if phase.label == name:
            return phase
    raise QueryError(f"no phase '{name}'; known: {', '.join(phase.label for phase in Phase)}")
