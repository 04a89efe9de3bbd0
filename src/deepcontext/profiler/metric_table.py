"""The metrics of a profile by name, each decoded when it is first asked for.

Does not combine values over the tree (`model.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, overload

from deepcontext.errors import QueryError
from deepcontext.profiler.metric import MetricRows

Default = TypeVar("Default")


class MetricTable(Mapping[str, MetricRows]):
    """Read-only mapping from metric name to rows.

    Differs from a dict in one point: an unknown name is a `QueryError` that lists the known ones.

    Args:
        sources: rows by metric name, or a function that returns them when called.
    """

    def __init__(self, sources: Mapping[str, MetricRows | Callable[[], MetricRows]]) -> None:
        self._sources = dict(sources)

    def __getitem__(self, name: str) -> MetricRows:
        try:
            rows = self._sources[name]
        except KeyError:
            known = ", ".join(sorted(self._sources)) or "none"
            raise QueryError(
                f"this profile has no metric '{name}'; the metrics it has: {known}"
            ) from None
        if isinstance(rows, MetricRows):
            return rows
        decoded = rows()
        self._sources[name] = decoded
        return decoded

    # `Mapping` builds these two on KeyError, which is never raised here.
    def __contains__(self, name: object) -> bool:
        return name in self._sources

    @overload
    def get(self, key: str, /) -> MetricRows | None: ...
    @overload
    def get(self, key: str, /, default: MetricRows | Default) -> MetricRows | Default: ...
    def get(self, key: str, /, default: object = None) -> object:
        """Return the rows, or `default` where the profile has no such metric."""
        if key not in self:
            return default
        return self[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)
