"""`report --steps`: what a step is, how long steps took over the run, the slowest ones, and the windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.summaries.kept_steps import causes, path_excesses, slowest_kept
from deepcontext.profiler.summaries.step_history import step_history
from deepcontext.profiler.summaries.steps import step_rule
from deepcontext.ui.format import format_count, format_ns, shorten_path
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.report.text_layout import TextLayout
from deepcontext.ui.sections.table import Column, Table, Unit, picked
from deepcontext.ui.step_texts import cause_texts, path_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.exemplars import Exemplar
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.windows import Window
    from deepcontext.profiler.summaries.step_history import SlowStep, StepHistory

_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-=+*#@"
_QUANTILES: Final = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))
_MOST_BARS: Final = 64
_SHOWN: Final = 5
_SLOWEST: Final = (
    Column("number", "step", Unit.ONE_COUNT),
    Column("duration_ns", "time", Unit.ONE_NS),
    Column("end_ns", "ended after", Unit.ONE_NS),
    Column("more", "more than usual", Unit.NUMBER),
    Column("where", "where", Unit.TEXT),
)
_SLOWEST_OF_RANKS: Final = (
    _SLOWEST[0],
    Column("rank", "rank", Unit.NUMBER),
    *(each for each in _SLOWEST[1:] if each.value != "end_ns"),
)
_PATHS: Final = (
    Column("excess_ns", "more than usual", Unit.ONE_NS),
    Column("usual_ns", "usual", Unit.METRIC),  # often 0
    Column("path", "path", Unit.NAME),
)
_WINDOW: Final = (
    Column("part", "part", Unit.NUMBER),
    Column("steps", "steps", Unit.NUMBER),
    Column("wall_ns", "elapsed", Unit.ONE_NS),
    Column("step_ns", "step", Unit.ONE_NS),
    Column("longest_ns", "longest step", Unit.ONE_NS),
)


def render_steps(profile: Profile, *, console: Console, warmup: int | None = None) -> None:
    """Print the steps of a run.

    Args:
        profile: the profile.
        console: console to print to; its width and encoding are respected.
        warmup: number of steps before the steady state; None to tell warm-up by the time of steps.
    """
    layout = TextLayout(console)
    rule, history = step_rule(profile), step_history(profile)
    windows = profile.windows_after(warmup)
    if history is None and (kept := slowest_kept(profile)):
        _print_of_ranks(layout, profile, kept)
        return
    if rule is None or history is None:
        why = f"a step is {rule.explain()}" if rule else "it is of an older version, or merged"
        layout.prose(f"no times of steps in this profile: {why}")
        return
    place = (
        f", called at {shorten_path(rule.file, profile.run.cwd)}:{rule.line}" if rule.line else ""
    )
    layout.prose(f"a step is {rule.explain()}{place}; {format_count(rule.count)} steps ended")
    layout.title("Times of steps", "without the first one, whose beginning is not known")
    _print_times(layout, history)
    _print_slowest(layout, profile, history.slowest[:_SHOWN])
    _print_paths(layout, profile)
    if windows:
        _print_windows(layout, windows)


def _print_times(layout: TextLayout, history: StepHistory) -> None:
    facts = [f"{name} {format_ns(history.quantile(share))}" for share, name in _QUANTILES]
    facts.append(f"slowest {format_ns(history.slowest[0].duration_ns)}")
    layout.prose(f"{', '.join(facts)} (quantiles within 1 %)")
    is_ascii = not layout.console.encoding.lower().startswith("utf")
    layout.prose(sparkline(history, _ASCII_BARS if is_ascii else _BARS))


def _print_slowest(layout: TextLayout, profile: Profile, slowest: Sequence[SlowStep]) -> None:
    kept = {each.number: each for each in profile.exemplars}
    explained = [kept[each.number] for each in slowest if each.number in kept]
    reasons = dict(
        zip((each.number for each in explained), causes(profile, explained), strict=True)
    )
    rows = []
    for each in slowest:
        cause = reasons.get(each.number)
        more, where = cause_texts(cause, profile.run.cwd) if cause else ("", "")
        if reasons and not cause:
            where = "no time line"
        rows.append({
            **picked(each, "number", "duration_ns", "end_ns"),
            "more": more,
            "where": where,
        })
    print_table(layout, Table("Slowest steps", "", _SLOWEST, rows))


def _print_of_ranks(layout: TextLayout, profile: Profile, kept: Sequence[Exemplar]) -> None:
    """Print the slowest steps of joined ranks."""
    shown = [each for each in kept if ExemplarReason.SLOW in each.reasons][:_SHOWN]
    rows = []
    for each, cause in zip(shown, causes(profile, shown), strict=True):
        more, where = cause_texts(cause, profile.run.cwd)
        facts = picked(each, "number", "duration_ns")
        rows.append({**facts, "rank": str(each.rank), "more": more, "where": where})
    note = "of all ranks, compared with steps that ranks kept at random"
    print_table(layout, Table("Slowest steps", note, _SLOWEST_OF_RANKS, rows))
    _print_paths(layout, profile)


def _print_paths(layout: TextLayout, profile: Profile) -> None:
    """Print the paths that made the slowest kept step slow."""
    for slowest in slowest_kept(profile)[:1]:
        found = path_excesses(profile, slowest)[:_SHOWN]
        rows = [
            {**picked(each, "excess_ns", "usual_ns"), "path": path_text(profile, each.node)}
            for each in found
        ]
        of_rank = "" if slowest.rank is None else f" of rank {slowest.rank}"
        title = f"Why step {format_count(slowest.number)}{of_rank} is slow"
        note = "call paths with most more time than in the steps kept at random"
        print_table(layout, Table(title, note, _PATHS, rows, metric_unit="ns"))


def sparkline(history: StepHistory, bars: str = _BARS) -> str:
    """Return the mean times of consecutive parts of the run as bars, from 0 to the largest mean."""
    each = -(-len(history.parts) // _MOST_BARS)
    groups = [history.parts[n : n + each] for n in range(0, len(history.parts), each)]
    means = [sum(part.total_ns for part in g) / sum(part.count for part in g) for g in groups]
    top = max(means) or 1
    return "".join(bars[min(int(mean / top * len(bars)), len(bars) - 1)] for mean in means)


def _print_windows(layout: TextLayout, windows: Sequence[Window]) -> None:
    rows = [
        {
            "part": window.kind.value,
            "steps": f"{window.first_step}-{window.last_step}" if window.steps else "-",
            "wall_ns": window.wall_ns,
            "step_ns": window.times.mean_ns if window.times.count else None,
            "longest_ns": window.times.maximum_ns,
        }
        for window in windows
    ]
    print_table(layout, Table("Windows", "parts of the run for --window", _WINDOW, rows))
