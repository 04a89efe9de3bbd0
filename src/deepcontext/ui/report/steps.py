"""`report --steps`: what a step is, how long steps took over the run, the slowest ones, and the windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.summaries.kept_steps import slowest_kept
from deepcontext.profiler.summaries.step_history import step_history
from deepcontext.profiler.summaries.steps import step_rule
from deepcontext.ui.format import format_count, format_ns, shorten_path
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.report.text_layout import TextLayout
from deepcontext.ui.sections import steps as tables

if TYPE_CHECKING:
    from rich.console import Console

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.step_history import StepHistory

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
    if history is None and slowest_kept(profile):
        _print_slowest(layout, profile)
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
    _print_slowest(layout, profile)
    if windows:
        print_table(layout, tables.windows(windows))


def _print_times(layout: TextLayout, history: StepHistory) -> None:
    facts = [f"{name} {format_ns(history.quantile(share))}" for share, name in _QUANTILES]
    facts.append(f"slowest {format_ns(history.slowest[0].duration_ns)}")
    layout.prose(f"{', '.join(facts)} (quantiles within 1 %)")
    is_ascii = not layout.console.encoding.lower().startswith("utf")
    layout.prose(sparkline(history, _ASCII_BARS if is_ascii else _BARS))


def _print_slowest(layout: TextLayout, profile: Profile) -> None:
    for table in (tables.slowest(profile, _SHOWN), *tables.paths(profile, _SHOWN)):
        print_table(layout, table)


def sparkline(history: StepHistory, bars: str = _BARS) -> str:
    """Return the mean times of consecutive parts of the run as bars, from 0 to the largest mean."""
    each = -(-len(history.parts) // _MOST_BARS)
    groups = [history.parts[n : n + each] for n in range(0, len(history.parts), each)]
    means = [sum(part.total_ns for part in g) / sum(part.count for part in g) for g in groups]
    top = max(means) or 1
    return "".join(bars[min(int(mean / top * len(bars)), len(bars) - 1)] for mean in means)
