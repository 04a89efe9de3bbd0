"""One compact document about a profile, for a language model or a colleague who has not seen the program.

The same profile gives the same document. It has no environment, and the program's arguments only on
request. Invariant: its JSON has at most `MOST_BYTES`; what does not fit is left out from the end of the
longest list, and `left_out` says how much.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from deepcontext.analyzers import known_findings
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.exemplars import ExemplarReason
from deepcontext.profiler.model.source import line_text, lines_around
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.gpu import gpu_use
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.kept_steps import causes, slowest_kept
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.memory import memory_use
from deepcontext.profiler.summaries.operators import by_operator
from deepcontext.profiler.summaries.steps import step_times
from deepcontext.profiler.summaries.verdict import leading_lines, verdicts
from deepcontext.ui.account_texts import (
    CAUSE_NAMES,
    base_text,
    groups_of,
    occasions_text,
    setup_text,
    steady_text,
    verdict_text,
)
from deepcontext.ui.finding_texts import texts_of
from deepcontext.ui.format import format_bytes, format_ns, format_share, shorten_path
from deepcontext.ui.step_texts import cause_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import Account, Place
    from deepcontext.profiler.summaries.basis import Basis

    Document = dict[str, Any]

MOST_BYTES: Final = 12_000
_MOST_LINES: Final = 10
_MOST_OPERATORS: Final = 10
_MOST_KERNELS: Final = 5
_MOST_STEPS: Final = 5
_MOST_FINDINGS: Final = 5
# Lines of source above and below a costly line.
_AROUND: Final = 4
_MOST_CHANGES: Final = 3


def evidence(
    profile: Profile, processes: Sequence[Profile] = (), *, arguments: bool = False
) -> Document:
    """Return the document, as a dict of JSON's types.

    Args:
        profile: the profile.
        processes: the profiles of all processes of the run, if it had several.
        arguments: include the program's arguments, which may hold secrets.
    """
    basis = basis_of(profile)
    run, profile, steps = basis.whole, basis.profile, basis.all_steps
    found = account(profile)
    leading = leading_lines(found)
    steady = steady_text(basis)
    document: Document = {
        "program": _program(run, arguments=arguments),
        "shown": f"the steady state, {steady}; times and counts are means of a step"
        if steady
        else "",
        "besides": occasions_text(basis),
        "set_up": setup_text(basis),
        "limited_by": [verdict_text(profile, verdict) for verdict in verdicts(profile)],
        "elapsed_time": _groups(found),
        "lines_are_shares_of": base_text(found, leading, steps),
        "lines": [
            _line(basis, place, leading.value(place) / leading.whole_ns)
            for place in leading.lines[:_MOST_LINES]
        ],
        "other_threads": [_line(basis, place, None) for place in found.others if place.frame][
            :_MOST_OPERATORS
        ],
        "findings": _findings(profile, processes),
        "slowest_steps": _slowest_steps(basis),
        "operators": _operators(basis),
        "kernels": _kernels(basis),
        "jitted_functions": _jitted(basis),
        "lines_inside_compiled_programs": _device_lines(basis),
        "compiled_again": _recompilations(run),
        "memory": _memory(run),
        "not_known": _not_known(run),
    }
    document = {name: value for name, value in document.items() if value}
    return _cut(document)


def to_markdown(document: Document) -> str:
    """Return the document as Markdown."""
    parts = []
    for name, value in document.items():
        parts.append(f"## {name.replace('_', ' ')}\n\n{_markdown(value)}\n")
    return "# Profile of a program\n\n" + "\n".join(parts)


def _markdown(value: object) -> str:
    match value:
        case dict():
            return "\n".join(f"- {name}: {_text(each)}" for name, each in value.items())
        case list():
            return "\n".join(f"- {_text(each)}" for each in value)
        case _:
            return str(value)


def _text(value: object) -> str:
    """Return one item of a list: its values in one line, and the source below."""
    if not isinstance(value, dict):
        return str(value)
    short = {name: each for name, each in value.items() if "\n" not in str(each)}
    blocks = [str(each) for name, each in value.items() if name not in short]
    text = "; ".join(f"{name}: {each}" for name, each in short.items())
    return text + "".join(f"\n\n```\n{block}\n```\n" for block in blocks)


def _groups(found: Account) -> Document:
    return {
        group.name: _share(group.share, group.parts) for group in groups_of(found) if group.share
    }


def _share(share: float, parts: Sequence[tuple[str, float]]) -> str:
    """Return ``"20.0 % (forward 5.0 %, backward 15.0 %)"``."""
    text = ", ".join(f"{name} {format_share(part)}" for name, part in parts)
    return f"{format_share(share)}{text and f' ({text})'}"


def _program(profile: Profile, *, arguments: bool) -> Document:
    run, steps = profile.run, step_times(profile)
    facts = {
        "script": run.script or "started the session itself",
        "arguments": " ".join(run.command) if arguments else "",
        "ranks": run.ranks or "",
        "elapsed": format_ns(run.wall_ns),
        "processor_time": format_ns(run.cpu_user_ns + run.cpu_system_ns),
        "processors": run.cpu_count or "",
        "memory_at_most": format_bytes(run.peak_rss_bytes) if run.peak_rss_bytes else "",
        "python": run.python,
        "frameworks": ", ".join(f"{name} {version}" for name, version in run.frameworks.items()),
        "steps": f"{steps.count}, mean {format_ns(steps.mean)}" if steps else "",
        "ended_by": "" if run.exit_reason == "exit" else run.exit_reason,
    }
    return {name: value for name, value in facts.items() if value}


def _slowest_steps(basis: Basis) -> list[Document]:
    run = basis.whole
    slowest = [each for each in slowest_kept(run) if ExemplarReason.SLOW in each.reasons]
    rows = []
    for step, cause in zip(slowest, causes(run, slowest[:_MOST_STEPS]), strict=False):
        more, where = cause_texts(cause, run.run.cwd)
        rows.append({
            "step": step.number,
            "rank": "" if step.rank is None else str(step.rank),
            "time": format_ns(step.duration_ns),
            "more_than_usual": more,
            "where": where,
            "does": ", ".join(each.kind for each in basis.occasions if each.has(step.number)),
        })
    return [{name: value for name, value in row.items() if value} for row in rows]


def _line(basis: Basis, place: Place, share: float | None) -> Document:
    profile, steps = basis.profile, basis.divisor
    row: Document = {
        "line": "outside the program's own code",
        "time": format_ns(place.time_ns / steps),
        "spent_on": ", ".join(
            f"{CAUSE_NAMES[cause]} {format_ns(value / steps)}" for cause, value in place.causes
        ),
    }
    if place.callees:
        row["native_functions"] = ", ".join(
            f"{each.name} {format_ns(each.time_ns / steps)}" for each in place.callees
        )
    if share is not None:
        row["share"] = format_share(share)
    if place.gpu_ns:
        row["gpu_time"] = format_ns(place.gpu_ns / steps)
    if place.frame is not None:
        frame = place.frame
        row["line"] = f"{shorten_path(frame.file, profile.run.cwd)}:{frame.line}"
        row["function"] = frame.name
        row["source"] = lines_around(
            frame.file, frame.line, _AROUND, profile.run.start_unix_ns or None
        )
    return {name: value for name, value in row.items() if value}


def _findings(profile: Profile, processes: Sequence[Profile]) -> list[Document]:
    found = known_findings(profile, lambda: processes).found
    return [
        {
            "severity": str(finding.severity),
            "title": finding.title,
            **dict(texts_of(profile, finding)),
        }
        for finding in found[:_MOST_FINDINGS]
    ]


def _operators(basis: Basis) -> list[Document]:
    steps = basis.divisor
    table = by_operator(basis.profile, "host_time_ns", _MOST_OPERATORS)
    return [
        {
            "name": row.name,
            "own_time": format_ns(row.exclusive / steps),
            "calls": round(row.calls.count / steps, 2) if row.calls else 0,
            "mean_call": format_ns(row.calls.mean) if row.calls else "",
        }
        for row in table.rows
        if row.exclusive
    ]


def _kernels(basis: Basis) -> list[Document]:
    use, steps = gpu_use(basis.profile, _MOST_KERNELS), basis.divisor
    if use is None:
        return []
    return [
        {
            "name": kernel.name,
            "gpu_time": format_ns(kernel.gpu_time_ns / steps),
            "share_of_gpu_time": format_share(kernel.gpu_time_ns / use.time_ns),
            "launches": round(kernel.launches / steps, 2),
        }
        for kernel in use.kernels
    ]


def _jitted(basis: Basis) -> list[Document]:
    steps = basis.divisor
    return [
        {
            "name": each.name,
            "launches": round(each.launches / steps, 2),
            "device_time": format_ns(each.device_ns / steps),
            "host_time_of_the_call": format_ns(each.dispatch_ns / steps),
            "compiled": f"{each.compilations} times, {format_ns(each.compile_ns)}",
        }
        for each in jax_programs.jitted_functions(basis.profile)[:_MOST_OPERATORS]
    ]


def _device_lines(basis: Basis) -> list[Document]:
    """Return the lines of the program that JAX's compiled programs spend their device time for."""
    profile, steps = basis.profile, basis.divisor
    metric = jax_programs.device_metric(profile)
    if jax_programs.section(profile) is None or metric not in profile.metrics:
        return []
    table = by_line(profile, metric, _MOST_LINES, largest="exclusive")
    started_ns = profile.run.start_unix_ns or None
    return [
        {
            "line": f"{shorten_path(row.file, profile.run.cwd)}:{row.line}",
            "device_time": format_ns(row.exclusive / steps),
            "share": format_share(row.exclusive / table.total),
            "source": line_text(row.file, row.line, started_ns),
        }
        for row in table.rows
        if row.exclusive
    ]


def _recompilations(profile: Profile) -> list[Document]:
    return [
        {
            "function": each.function,
            "times": each.count,
            "time": format_ns(each.spent_ns),
            "because": "; ".join(each.changes[:_MOST_CHANGES]) or each.reason,
            "at": f"{shorten_path(each.path[-1].file, profile.run.cwd)}:{each.path[-1].line}"
            if each.path
            else "",
        }
        for each in jax_programs.recompilations(profile)[:_MOST_OPERATORS]
    ]


def _memory(profile: Profile) -> Document:
    use = memory_use(profile)
    return {
        pool.name: {
            "peak": format_bytes(pool.peak_bytes),
            "at_the_peak": ", ".join(
                f"{role} {format_bytes(value)}"
                for role, value in pool.peak_role_bytes.items()
                if value
            ),
            "held_at_the_end": format_bytes(pool.live_bytes),
        }
        for pool in (use.pools if use else ())
        if pool.peak_bytes
    }


def _not_known(profile: Profile) -> list[str]:
    trust = profile.trust
    return [
        *trust.warnings,
        *(
            f"{each.name}: {each.status}, {each.reason}"
            for each in trust.collectors
            if each.status in {Status.DEGRADED, Status.UNAVAILABLE}
        ),
    ]


def _cut(document: Document) -> Document:
    """Drop rows from the end of the longest list until the document fits."""
    left_out = 0
    while len(json.dumps(document).encode()) > MOST_BYTES:
        lists = [name for name, value in document.items() if isinstance(value, list) and value]
        longest = max(lists, key=lambda name: len(json.dumps(document[name])))
        document = {**document, longest: document[longest][:-1]}
        left_out += 1
    return {**document, "left_out": f"{left_out} rows"} if left_out else document
