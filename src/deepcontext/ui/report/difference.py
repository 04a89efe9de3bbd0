"""The output of `deepcontext diff`, as text and JSON; `profiler.summaries.comparison` computes it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.comparison import differing_circumstances
from deepcontext.ui.account_texts import steady_text
from deepcontext.ui.format import format_bytes, format_count, format_ns, format_value
from deepcontext.ui.labels import metric_label
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.report.text_layout import TextLayout
from deepcontext.ui.sections.table import Column, Table, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.comparison import Change, Comparison
    from deepcontext.ui.sections.table import Row

FORMAT: Final = "deepcontext diff"
VERSION: Final = 1
_FUNCTIONS: Final = "functions"
# Runs of one program on a shared machine differ by this much without any change.
_STEADY: Final = 0.02


def render_difference(
    comparison: Comparison,
    profiles: tuple[Profile, Profile],
    names: tuple[str, str],
    *,
    console: Console,
    limit: int,
) -> None:
    """Print what changed, the largest change of each table first.

    Args:
        comparison: the comparison.
        profiles: the compared profiles.
        names: their files as the user named them.
        console: console to print to; its width, colours and encoding are respected.
        limit: rows of each table.
    """
    layout = TextLayout(console)
    layout.line(Text("deepcontext diff", "bold"))
    for label, name, profile, index in zip(
        ("before", "after"), names, profiles, (0, 1), strict=True
    ):
        layout.prose(_side(name, profile, comparison, index), hanging=f"{label:<9} ")
    layout.prose(_verdict(comparison), "bold", hanging=f"{'total':<9} ")
    for sentence in differing_circumstances(*profiles):
        layout.prose(sentence, "yellow", indent="", hanging="! ")
    print_table(layout, _table("Phases", comparison.phases, comparison.unit))
    for name, changes in comparison.tables.items():
        title = "Functions of the program" if name == _FUNCTIONS else name.capitalize()
        print_table(layout, _table(title, changes[:limit], comparison.unit, len(changes)))
    layout.line()
    layout.line("one run each: repeat both before trusting a small change", "dim")


def difference_to_dict(comparison: Comparison, limit: int) -> dict[str, object]:
    """Return the comparison as a dict of JSON's types; documented in docs/reference/diff-json.md."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "metric": comparison.metric,
        "unit": comparison.unit,
        "part": comparison.part.value,
        "per": "run" if comparison.steps is None else "step",
        "steps": comparison.steps,
        "total": _plain(comparison.total),
        "phases": [_plain(change) for change in comparison.phases],
        **{
            name: [_plain(change) for change in changes[:limit]]
            for name, changes in comparison.tables.items()
        },
    }


def _plain(change: Change) -> dict[str, object]:
    return {**asdict(change), "difference": change.difference, "ratio": change.ratio}


def _side(name: str, profile: Profile, comparison: Comparison, index: int) -> str:
    run, basis = profile.run, basis_of(profile)
    facts = [PurePath(run.script).name, f"{format_ns(run.wall_ns)} elapsed"]
    if basis.part is Part.STEADY:
        facts[1] = f"steady state of {steady_text(basis)}"
    if run.peak_rss_bytes:
        facts.append(f"{format_bytes(run.peak_rss_bytes)} of memory at most")
    elif comparison.steps is not None:
        facts.append(f"{format_count(comparison.steps[index])} steps")
    return f"{name}: {', '.join(filter(None, facts))}"


def _verdict(comparison: Comparison) -> str:
    total, unit = comparison.total, comparison.unit
    per = " a step" if comparison.steps is not None else ""
    words = (
        f"{metric_label(comparison.metric)}: {format_value(total.before, unit)}{per} before, "
        f"{format_value(total.after, unit)} after"
    )
    ratio = total.ratio
    if ratio is None:
        return words
    if abs(ratio - 1) < _STEADY:
        return f"{words}, {ratio:.3f} times as much: practically unchanged"
    return f"{words}, {ratio:.2f} times as much"


def _table(title: str, changes: Sequence[Change], unit: str, count: int | None = None) -> Table:
    note = "self: without deeper functions of the program" if title.startswith("Functions") else ""
    rows = [{**_plain(each), "shown": f"{each.name}  {each.file}".rstrip()} for each in changes]
    return Table(title, note, _COLUMNS, rows, count, metric_unit=unit)


def _ratio(change: Row) -> str:
    if change["ratio"] is None:
        return "new"
    return f"{change['ratio']:.2f}x" if change["after"] else "gone"


_COLUMNS: Final = (
    Column("difference", "change", Unit.CHANGE),
    Column("before", "before", Unit.METRIC),
    Column("after", "after", Unit.METRIC),
    Column(_ratio, "ratio", Unit.NUMBER, rank=1),
    Column("calls_before", "calls before", Unit.ONE_COUNT, rank=3),
    Column("calls_after", "calls after", Unit.ONE_COUNT, rank=2),
    Column("shown", "name", Unit.NAME),
)
