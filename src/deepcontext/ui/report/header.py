"""The parts of a report about the run, and about how far to trust its numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.run_info import ALL_RANKS
from deepcontext.profiler.model.still_running import is_running
from deepcontext.profiler.summaries.basis import Part
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.operators import operator_time
from deepcontext.profiler.summaries.phases import by_phase
from deepcontext.profiler.summaries.steps import step_rule, step_times
from deepcontext.ui.account_texts import occasions_text, setup_text, steady_text
from deepcontext.ui.format import (
    format_bytes,
    format_count,
    format_mean_sd,
    format_ns,
    format_share,
)
from deepcontext.ui.labels import figures, words
from deepcontext.ui.rank_texts import ranks_fact
from deepcontext.ui.read_from import read_from_text
from deepcontext.ui.sections.table import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.run_info import RunInfo
    from deepcontext.profiler.model.trust import CollectorReport, TrustReport
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.view import View

_WARNING = "yellow"
_END = {"exit": "ran to its end"}
_SNAPSHOT = {
    True: "still running",
    False: "crashed, killed, or ended by os._exit, after the last snapshot",
    None: "still running when this was written (or killed afterwards)",
}
_STATUS_STYLE = {
    Status.RAN: "",
    Status.DEGRADED: _WARNING,
    Status.UNAVAILABLE: "red",
    Status.OFF: "dim",
}


def print_short_header(layout: TextLayout, view: View) -> None:
    """Print the program, the elapsed time, the share of operators, and the metric."""
    _print_facts(layout, _facts(layout, view, is_full=False))


def print_header(layout: TextLayout, view: View) -> None:
    """Print the same facts, and the machine and versions."""
    _print_facts(layout, _facts(layout, view, is_full=True))


def _facts(layout: TextLayout, view: View, *, is_full: bool) -> Sequence[tuple[str, str]]:
    profile, metric, basis = view.profile, view.metric, view.basis
    whole = basis.whole if basis.part is Part.STEADY else profile
    run = whole.run
    described = profile.metrics[metric].descriptor.description
    steady = steady_text(basis)
    versions = ", ".join((run.python, *(f"{k} {v}" for k, v in run.frameworks.items())))
    return (
        _program(whole),
        ("run", _times(run)),
        ("ranks", ranks_fact(whole)),
        ("machine", _machine(run) if is_full else ""),
        ("versions", versions if is_full else ""),
        ("steps", _steps(whole, layout)),
        (
            "shown",
            f"the steady state, a step: {steady}; --window all shows the run" if steady else "",
        ),
        ("besides", occasions_text(basis)),
        ("set-up", setup_text(basis)),
        ("operators", _operators(view) if is_full else ""),
        ("GPU", gpu_text(view)),
        ("tables by", "" if metric == default_metric(profile) else f"{metric}: {described}"),
    )


def _print_facts(layout: TextLayout, facts: Sequence[tuple[str, str]]) -> None:
    layout.line(Text("deepcontext report", "bold"))
    for name, fact in facts:
        if fact:
            layout.prose(fact, hanging=f"{name:<9} ")


def print_warnings(layout: TextLayout, warnings: Sequence[str]) -> None:
    """Print what a reader must know before trusting the numbers."""
    for warning in warnings:
        layout.prose(warning, _WARNING, indent="", hanging="! ")


def print_all_warnings(layout: TextLayout, warnings: Sequence[str]) -> None:
    """Print the warnings, if any, as a separate part."""
    if warnings:
        layout.line()
        print_warnings(layout, warnings)


def print_trust_summary(layout: TextLayout, trust: TrustReport) -> None:
    """Print which collectors ran and which did not, without the reasons."""
    named = {
        status: [each.name for each in trust.collectors if each.status is status]
        for status in _STATUS_STYLE
    }
    layout.title("Trust", "--full shows reasons, counts and losses")
    for status, names in named.items():
        if names:
            layout.prose(", ".join(names), _STATUS_STYLE[status], hanging=f"{status:<11} ")


def print_trust(layout: TextLayout, trust: TrustReport) -> None:
    """Print the whole trust report, warnings first."""
    layout.title("Trust", "what was collected and lost, and the overhead of collecting")
    print_warnings(layout, trust.warnings)
    facts = [
        (collector.name, _collector(collector), _STATUS_STYLE[collector.status])
        for collector in trust.collectors
    ]
    if trust.hook_cost_ns_per_event is not None:
        cost = f"{format_ns(trust.hook_cost_ns_per_event)} an operator call, measured in this run"
        facts.append(("hook cost", cost, ""))
    counters = [
        f"{words(name)} {format_count(value)}" for name, value in trust.counters.items() if value
    ]
    if counters:
        facts.append(("counted", ", ".join(counters), ""))
    width = max(9, *(len(name) for name, _, _ in facts)) if facts else 0
    for name, fact, style in facts:
        layout.prose(fact, style, hanging=f"{layout.clean(name):<{width}} ")


def wall_share(profile: Profile) -> str:
    """Return operators' share of the elapsed time.

    "" where the elapsed time is unknown, or where the operators of several threads took longer.
    """
    wall_ns, spent_ns = profile.run.wall_ns, operator_time(profile)
    return format_share(spent_ns / wall_ns) if spent_ns <= wall_ns and wall_ns > 0 else ""


def steps_text(profile: Profile, layout: TextLayout) -> str:
    """Return ``"40 of 250 ms ± 4 %"``, or "" for a program without steps."""
    spread = step_times(profile)
    if spread is None:
        return format_count(profile.run.steps) if profile.run.steps else ""
    return (
        f"{format_count(spread.count)} of {format_mean_sd(spread.mean, spread.sd, layout.glyphs)}"
    )


def gpu_text(view: View) -> str:
    """Return ``"1.20 s in 4,800 kernels, copies and memsets"``, or "" without a GPU."""
    use = gpu_use(view.profile, 1)
    if use is None:
        return ""
    launches = f"{view.text_of(use.launches, Unit.COUNT)} kernels, copies and memsets"
    return f"{view.time(use.time_ns)} in {launches}{view.each}"


def _program(profile: Profile) -> tuple[str, str]:
    """Return the program, or the file of another tool that the profile was read from."""
    source = read_from_text(profile.trust)
    return ("read from", source) if source else ("program", _command(profile.run))


def _command(run: RunInfo) -> str:
    if not run.command:
        return run.script or "not known"
    command = run.shown_command
    if run.process_name:
        command = f"{run.process_name} of {command}"
    if not run.ranks:
        return command
    part = f"{run.ranks} ranks" if run.rank == ALL_RANKS else f"rank {run.rank} of {run.ranks}"
    return f"{command} ({part})"


def _times(run: RunInfo) -> str:
    is_job = run.rank == ALL_RANKS  # whose elapsed time is that of its ranks
    # Files of other tools may hold sums alone.
    facts = [f"{format_ns(run.wall_ns)} elapsed"] if run.wall_ns and not is_job else []
    if run.cpu_user_ns or run.cpu_system_ns:
        facts.append(f"{format_ns(run.cpu_user_ns + run.cpu_system_ns)} of processor time")
    if run.peak_rss_bytes:
        facts.append(f"{format_bytes(run.peak_rss_bytes)} of memory at most")
    if is_job and facts:
        facts[-1] += " in all"
    if run.exit_reason:
        facts.append(_end(run))
    if run.start_unix_ns:
        started = datetime.fromtimestamp(run.start_unix_ns // 10**9, UTC)
        facts.append(f"started {started:%Y-%m-%d %H:%M:%S} UTC")
    return ", ".join(facts)


def _end(run: RunInfo) -> str:
    if run.exit_reason == "snapshot":
        return _SNAPSHOT[is_running(run)]
    return _END.get(run.exit_reason, f"ended by {run.exit_reason}")


def _machine(run: RunInfo) -> str:
    processors = f"{run.cpu_count} x {run.cpu_model}" if run.cpu_count else run.cpu_model
    return ", ".join(filter(None, (run.hostname, processors, run.platform)))


def _steps(profile: Profile, layout: TextLayout) -> str:
    text, rule = steps_text(profile, layout), step_rule(profile)
    spread = step_times(profile)
    if spread is not None and spread.minimum is not None and spread.maximum is not None:
        text = f"{text}, {format_ns(spread.minimum)} to {format_ns(spread.maximum)}"
    if rule is None or not text:
        return text
    return f"{text}; a step is {rule.explain()}"


def _operators(view: View) -> str:
    profile = view.profile
    calls = sum(row.operator_calls for row in by_phase(profile))
    if not calls:
        return ""
    text = f"{view.text_of(calls, Unit.COUNT)} calls{view.each}, {view.time(operator_time(profile))} in them"
    share = wall_share(profile)
    if not share:
        return f"{text}, on several threads" if profile.run.wall_ns > 0 else text
    return f"{text}, {share} of the elapsed time (the rest is Python code and waiting)"


def _collector(collector: CollectorReport) -> str:
    details = ", ".join(
        f"{name} {value}" for name, value in figures(dict(collector.details)).items()
    )
    text = f"{collector.status}{f': {collector.reason}' if collector.reason else ''}"
    return f"{text} ({details})" if details else text
