"""What changed between two profiles of one program: by phase, function, operator, module, kernel.

Functions are compared, not lines: an edit moves every line below it. Files are taken relative to
the folder each run began in. Invariant: the changes of one table, including the rows that the limit
leaves out, add up to at most the change of the total.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.metric_values import summed
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.profiler.summaries.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.basis import Part
    from deepcontext.profiler.summaries.phases import PhaseRow
    from deepcontext.profiler.summaries.tables import Table

    Key = tuple[str, str]
    Side = Mapping[Key, tuple[int, int]]

# A table leaves out changes below this share of the larger total.
LEAST_SHARE: Final = 0.001


@dataclass(frozen=True, slots=True)
class Change:
    """One row of a comparison, before and after; 0 on the side that lacks the row.

    Attributes:
        name: phase, function, operator, module or kernel.
        file: source file of a function, relative to the run's folder; "" for the others.
        before: exclusive value of the metric, in its unit, per step where steps are compared.
        after: the same for the second profile.
        calls_before: operator calls per step or run; 0 where calls are not counted.
        calls_after: the same for the second profile.
    """

    name: str
    file: str
    before: int
    after: int
    calls_before: float = 0.0
    calls_after: float = 0.0

    @property
    def difference(self) -> int:
        """Increase from the first profile to the second, in the metric's unit."""
        return self.after - self.before

    @property
    def ratio(self) -> float | None:
        """`after` divided by `before`; None where `before` is 0."""
        return self.after / self.before if self.before else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two profiles, compared by one metric.

    Attributes:
        metric: name of the metric.
        unit: its unit.
        steps: number of steps of each profile, by which values are divided; None for whole runs.
        part: what is compared: steady states, runs, or windows.
        total: sum of the metric over the profile.
        phases: in the order of `PHASES`, without phases that are zero in both profiles.
        tables: keyed by "functions" and the plural name of each compared table of `tables.TABLES`;
            largest change first.
    """

    metric: str
    unit: str
    steps: tuple[int, int] | None
    part: Part
    total: Change
    phases: tuple[Change, ...]
    tables: Mapping[str, tuple[Change, ...]]


def compare(
    before: Profile,
    after: Profile,
    metric: str | None = None,
    steps: tuple[int, int] | None = None,
) -> Comparison:
    """Compare two profiles.

    Args:
        before: the baseline.
        after: the profile to compare with the baseline.
        metric: name of a summed metric that both profiles have; None for `default_metric`.
        steps: number of steps of each profile, both above 0, to compare steps; None to compare
            whole runs.

    Raises:
        QueryError: a profile has no such metric, or the metric is not summed; the message names
            the summed metrics.
    """
    metric = metric or default_metric(before, after)
    scales = (1.0, 1.0) if steps is None else (1.0 / steps[0], 1.0 / steps[1])
    sides = (before, after)
    totals = [int(summed(profile, metric).sum()) for profile in sides]
    total = Change("total", "", *(round(t * s) for t, s in zip(totals, scales, strict=True)))

    def table(side: Callable[[Profile], Side]) -> tuple[Change, ...]:
        return _changes([side(profile) for profile in sides], scales)

    least = LEAST_SHARE * max(total.before, total.after)
    sides_of: dict[str, Callable[[Profile], Side]] = {
        "functions": lambda profile: _functions(profile, metric)
    }
    for each in TABLES.values():
        if each.is_compared:
            sides_of[each.plural] = partial(_groups, each, metric)
    tables = {name: _largest(table(side), least) for name, side in sides_of.items()}
    return Comparison(
        metric=metric,
        unit=after.metrics[metric].descriptor.unit,
        steps=steps,
        part=basis_of(after).part,
        total=total,
        phases=table(lambda profile: _phases(by_phase(profile, metric))),
        tables=tables,
    )


def _functions(profile: Profile, metric: str) -> Side:
    """Return values of functions of the user's code, without deeper functions of the user's code."""
    folder = profile.run.cwd.rstrip("/") + "/" if profile.run.cwd else ""
    values: dict[Key, tuple[int, int]] = {}
    for row in by_line(profile, metric, largest="exclusive").rows:
        key = (row.name, row.file.removeprefix(folder))
        values[key] = (values.get(key, (0, 0))[0] + row.exclusive, 0)
    return values


def _groups(table: Table, metric: str, profile: Profile) -> Side:
    return {
        (row.name, ""): (row.exclusive, row.calls.count if row.calls else 0)
        for row in table.make(profile, metric, 0).rows
    }


def _phases(rows: Iterable[PhaseRow]) -> Side:
    return {
        (row.phase.label.replace("_", " "), ""): (row.value, row.operator_calls)
        for row in rows
        if row.value or row.operator_calls
    }


def _changes(sides: list[Side], scales: tuple[float, float]) -> tuple[Change, ...]:
    before, after = sides
    changes = []
    for key in dict.fromkeys((*before, *after)):
        (value, calls), (value_after, calls_after) = before.get(key, (0, 0)), after.get(key, (0, 0))
        changes.append(
            Change(
                *key,
                round(value * scales[0]),
                round(value_after * scales[1]),
                calls * scales[0],
                calls_after * scales[1],
            )
        )
    return tuple(changes)


def _largest(changes: tuple[Change, ...], least: float) -> tuple[Change, ...]:
    """Return the changes above `least`, largest first; equal changes are ordered by name."""
    return tuple(
        sorted(
            (change for change in changes if abs(change.difference) > least),
            key=lambda change: (-abs(change.difference), change.name, change.file),
        )
    )


def differing_circumstances(before: Profile, after: Profile) -> tuple[str, ...]:
    """Describe differences other than the program's: machine, versions, settings."""
    found = []
    runs = (before.run, after.run)
    for name, values in (
        ("processor", [f"{run.cpu_count} x {run.cpu_model}" for run in runs]),
        ("Python", [run.python for run in runs]),
        *(
            (name, [run.frameworks.get(name, "none") for run in runs])
            for name in sorted({*runs[0].frameworks, *runs[1].frameworks})
        ),
        *(
            (f"setting {name}", [run.options.get(name, "none") for run in runs])
            for name in sorted({*runs[0].options, *runs[1].options} - {"output"})
        ),
    ):
        if values[0] != values[1]:
            found.append(f"{name}: {values[0]} before, {values[1]} after")
    return tuple(found)
