"""The output of `deepcontext diff`, as text and JSON; `profiler.summaries.comparison` computes it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.comparison import differing_circumstances
from deepcontext.ui.account_texts import steady_text
from deepcontext.ui.format import Elide, format_bytes, format_count, format_ns, format_value
from deepcontext.ui.labels import metric_label
from deepcontext.ui.report.text_layout import Column, TextLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.comparison import Change, Comparison

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
    _print_table(layout, "Phases", comparison.phases, comparison.unit, sum_known=True)
    for name, changes in comparison.tables.items():
        title = "Functions of the program" if name == _FUNCTIONS else name.capitalize()
        shown = changes[:limit]
        of_all = f" ({len(shown)} of {len(changes)})" if len(shown) < len(changes) else ""
        _print_table(layout, f"{title}{of_all}", shown, comparison.unit)
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


def _print_table(
    layout: TextLayout, title: str, changes: Sequence[Change], unit: str, *, sum_known: bool = False
) -> None:
    if not changes:
        return
    note = "" if sum_known else "self: without deeper functions of the program"
    layout.title(title, note if title.startswith("Functions") else "")
    has_calls = any(change.calls_before or change.calls_after for change in changes)
    columns = [
        Column("change"),
        Column("before"),
        Column("after"),
        Column("ratio", rank=1),
        *([Column("calls before", rank=3), Column("calls after", rank=2)] if has_calls else []),
        Column("name", Elide.MIDDLE),
    ]
    layout.table(columns, [_row(change, unit, has_calls=has_calls) for change in changes])


def _row(change: Change, unit: str, *, has_calls: bool) -> list[str | Text]:
    calls = [_calls(change.calls_before), _calls(change.calls_after)] if has_calls else []
    name = f"{change.name}  {change.file}" if change.file else change.name
    return [
        Text(_signed(change.difference, unit), "red" if change.difference > 0 else "green"),
        format_value(change.before, unit),
        format_value(change.after, unit),
        _ratio(change),
        *calls,
        name,
    ]


def _calls(count: float) -> str:
    return format_count(count) if count else "-"


def _signed(value: int, unit: str) -> str:
    return f"+{format_value(value, unit)}" if value > 0 else format_value(value, unit)


def _ratio(change: Change) -> str:
    if change.ratio is None:
        return "new"
    return "gone" if not change.after else f"{change.ratio:.2f}x"
