"""One compact document about a profile, for a language model or a colleague who has not seen the program.

The same profile gives the same document. It has no environment, and the program's arguments only on
request. Invariant: its JSON has at most `MOST_BYTES`; what does not fit is left out from the end of the
longest list, and `left_out` says how much.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from deepcontext.analyzers import known_findings
from deepcontext.profiler.format.source_text import AROUND
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.source import lines_around
from deepcontext.profiler.summaries.account import account
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.jax import programs as jax_programs
from deepcontext.profiler.summaries.lines import by_line
from deepcontext.profiler.summaries.measures import default_metric
from deepcontext.profiler.summaries.memory import memory_use
from deepcontext.profiler.summaries.verdict import leading_lines, verdicts
from deepcontext.ui.account_texts import (
    CAUSE_NAMES,
    base_text,
    groups_of,
    occasions_text,
    place_text,
    setup_text,
    steady_text,
    verdict_text,
)
from deepcontext.ui.finding_texts import texts_of
from deepcontext.ui.format import elide, format_bytes, format_ns, format_share
from deepcontext.ui.read_from import read_from_text
from deepcontext.ui.run_facts import run_facts
from deepcontext.ui.sections import groups, jax, steps
from deepcontext.ui.sections.view import View, line_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.account import Account, Place
    from deepcontext.profiler.summaries.basis import Basis

    Document = dict[str, Any]

MOST_BYTES: Final = 12_000
_MOST_ROWS: Final = 10
# Of columns.
_MOST_RANK: Final = 2
_MOST_KERNELS: Final = 5
_MOST_STEPS: Final = 5
_MOST_FINDINGS: Final = 5
# Not the command, whose arguments may hold secrets.
_FACTS: Final = (
    *("rank", "elapsed time", "CPU time", "processor", "peak memory", "python", "frameworks"),
    *("steps", "time of a step", "ended by"),
)
# Lines of source above and below a costly line.
_MOST_CHANGES: Final = 3
# A lambda of pybind11 has a name of 900 characters.
_NAME_WIDTH: Final = 80


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
    run, profile = basis.whole, basis.profile
    view = View(profile, default_metric(profile), _MOST_ROWS)
    kernels = groups.kernels(replace(view, limit=_MOST_KERNELS))
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
        "lines_are_shares_of": base_text(found, leading, basis.all_steps),
        "lines": [
            _line(basis, place, leading.value(place) / leading.whole_ns)
            for place in leading.lines[:_MOST_ROWS]
        ],
        "other_threads": [_line(basis, place, None) for place in found.others if place.frame][
            :_MOST_ROWS
        ],
        "findings": _findings(profile, processes),
        "slowest_steps": _slowest_steps(basis),
        "operators": groups.operators(view).texts(_MOST_RANK),
        "kernels": kernels.texts(_MOST_RANK) if kernels else [],
        "jitted_functions": jax.functions(view).texts(_MOST_RANK),
        "lines_inside_compiled_programs": _device_lines(view),
        "compiled_again": _recompilations(view.run),
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
    facts = run_facts(profile)
    script = profile.run.script or "started the session itself"
    return {
        **({"read_from": read} if (read := read_from_text(profile.trust)) else {"script": script}),
        **({"arguments": facts.get("command", "")} if arguments else {}),
        **{name: facts[name] for name in _FACTS if name in facts},
    }


def _slowest_steps(basis: Basis) -> list[Document]:
    table = steps.slowest(basis.whole, _MOST_STEPS)
    rows = []
    for row, texts in zip(table.rows, table.texts(), strict=True):
        does = ", ".join(each.kind for each in basis.occasions if each.has(row["number"]))
        rows.append({**texts, "does": does} if does else texts)
    return rows


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
            f"{elide(each.name, _NAME_WIDTH)} {format_ns(each.time_ns / steps)}"
            for each in place.callees
        )
    if share is not None:
        row["share"] = format_share(share)
    if place.gpu_ns:
        row["gpu_time"] = format_ns(place.gpu_ns / steps)
    if place.frame is not None:
        frame = place.frame
        row["line"] = place_text(profile, frame)
        row["function"] = frame.name
        row["source"] = lines_around(profile, frame.file, frame.line, AROUND)
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


def _device_lines(view: View) -> list[Document]:
    """Return the lines of the program that JAX's compiled programs spend their device time for."""
    profile = view.profile
    metric = jax_programs.device_metric(profile)
    if jax_programs.section(profile) is None or metric not in profile.metrics:
        return []
    table = by_line(profile, metric, _MOST_ROWS, largest="exclusive")
    return [
        {
            "line": view.place(line_of(row)),
            "device_time": view.time(row.exclusive),
            "share": format_share(row.exclusive / table.total),
            "source": view.text(row.file, row.line),
        }
        for row in table.rows
        if row.exclusive
    ]


def _recompilations(view: View) -> list[Document]:
    return [
        {
            "function": each.function,
            "times": each.count,
            "time": format_ns(each.spent_ns),
            "because": "; ".join(each.changes[:_MOST_CHANGES]) or each.reason,
            "at": view.place(asdict(each.path[-1])) if each.path else "",
        }
        for each in jax_programs.recompilations(view.profile)[:_MOST_ROWS]
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
