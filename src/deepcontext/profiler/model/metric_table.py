"""The metrics of a profile by name, each decoded at its first use.

Does not combine values over the tree (`profile_model.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, overload

from deepcontext.errors import QueryError
from deepcontext.profiler.format.metric import RENAMED
from deepcontext.profiler.model.metric_rows import MetricRows

if TYPE_CHECKING:
    from deepcontext.profiler.format.metric import MetricDescriptor

Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class DeferredRows:
    """Rows that are decoded or computed at their first use.

    Attributes:
        descriptor: what is measured.
        compute: returns the rows.
    """

    descriptor: MetricDescriptor
    compute: Callable[[], MetricRows]


class MetricTable(Mapping[str, MetricRows]):
    """Read-only mapping from metric name to rows.

    Differs from a dict in one point: an unknown name is a `QueryError` that lists the known ones.

    Args:
        sources: rows by metric name.
        derived: metrics that follow from other metrics; files do not hold these.
    """

    def __init__(
        self,
        sources: Mapping[str, MetricRows | DeferredRows],
        derived: Mapping[str, DeferredRows] | None = None,
    ) -> None:
        self._derived = frozenset(derived or ())
        self._sources = {**sources, **(derived or {})}

    @classmethod
    def of(cls, rows: Mapping[str, MetricRows]) -> MetricTable:
        """Return `rows` as a table; a table is returned as it is."""
        return rows if isinstance(rows, MetricTable) else cls(rows)

    def stored(self) -> MetricTable:
        """Return the metrics without the derived ones."""
        return MetricTable({
            name: source for name, source in self._sources.items() if name not in self._derived
        })

    def with_derived(self, derived: Mapping[str, DeferredRows]) -> MetricTable:
        """Return the same stored metrics with these derived ones."""
        return MetricTable(self.stored()._sources, derived)  # noqa: SLF001  of the same class

    def descriptors(self) -> tuple[MetricDescriptor, ...]:
        """Return what each metric measures, without decoding any."""
        return tuple(source.descriptor for source in self._sources.values())

    def __getitem__(self, name: str) -> MetricRows:
        try:
            rows = self._sources[name]
        except KeyError:
            known = ", ".join(sorted(self._sources)) or "none"
            renamed = f" ('{name}' is called '{RENAMED[name]}' now)" if name in RENAMED else ""
            raise QueryError(
                f"this profile has no metric '{name}'{renamed}; its metrics: {known}"
            ) from None
        if isinstance(rows, MetricRows):
            return rows
        decoded = rows.compute()
        self._sources[name] = decoded
        return decoded

    # `Mapping` implements the next two by catching KeyError, which is never raised here.
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
