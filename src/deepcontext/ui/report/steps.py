"""`report --steps`: what a step is, how long steps took over the run, the slowest ones, and the windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.kept_steps import causes, path_excesses, slowest_kept
from deepcontext.profiler.summaries.step_history import step_history
from deepcontext.profiler.summaries.steps import step_rule
from deepcontext.ui.format import Elide, format_count, format_ns, shorten_path
from deepcontext.ui.report.text_layout import Column, TextLayout
from deepcontext.ui.step_texts import cause_texts, path_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.windows import Window
    from deepcontext.profiler.summaries.step_history import SlowStep, StepHistory

_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-=+*#@"
_QUANTILES: Final = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))
_MOST_BARS: Final = 64
_SHOWN: Final = 5


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
    layout.title("Slowest steps")
    _print_slowest(layout, profile, history.slowest[:_SHOWN])
    _print_paths(layout, profile)
    if windows:
        layout.title("Windows", "parts of the run for --window")
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
    columns = [Column("step"), Column("time"), Column("ended after")]
    rows = [
        [format_count(each.number), format_ns(each.duration_ns), format_ns(each.end_ns)]
        for each in slowest
    ]
    if reasons:
        columns += [Column("more than usual"), Column("where", elide=Elide.END)]
        for row, each in zip(rows, slowest, strict=True):
            found = reasons.get(each.number)
            row.extend(cause_texts(found, profile.run.cwd) if found else ("-", "no time line"))
    layout.table(columns, rows)


def _print_paths(layout: TextLayout, profile: Profile) -> None:
    """Print the paths that made the slowest kept step slow."""
    for slowest in slowest_kept(profile)[:1]:
        found = path_excesses(profile, slowest)[:_SHOWN]
        if not found:
            return
        layout.title(
            f"Why step {format_count(slowest.number)} is slow",
            "call paths with most more time than in the steps kept at random",
        )
        layout.table(
            [Column("more than usual"), Column("usual"), Column("path", elide=Elide.MIDDLE)],
            [
                [
                    format_ns(each.excess_ns),
                    format_ns(each.usual_ns),
                    path_text(profile, each.node),
                ]
                for each in found
            ],
        )


def sparkline(history: StepHistory, bars: str = _BARS) -> str:
    """Return the mean times of consecutive parts of the run as bars, from 0 to the largest mean."""
    each = -(-len(history.parts) // _MOST_BARS)
    groups = [history.parts[n : n + each] for n in range(0, len(history.parts), each)]
    means = [sum(part.total_ns for part in g) / sum(part.count for part in g) for g in groups]
    top = max(means) or 1
    return "".join(bars[min(int(mean / top * len(bars)), len(bars) - 1)] for mean in means)


def _print_windows(layout: TextLayout, windows: Sequence[Window]) -> None:
    names = ("part", "steps", "elapsed", "step", "longest step")
    layout.table(
        [Column(name) for name in names],
        [
            (
                window.kind.value,
                f"{window.first_step}-{window.last_step}" if window.steps else "-",
                format_ns(window.wall_ns),
                format_ns(window.times.mean_ns) if window.times.count else "-",
                format_ns(window.times.maximum_ns) if window.times.maximum_ns else "-",
            )
            for window in windows
        ],
    )
