"""What a session recorded, ready to be written: one moment of a run.

Runs inside the program under test, hence the standard library only. Does not read profiles
(`profile.py`).
"""

from __future__ import annotations

import array
import platform
import struct
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from deepcontext.profiler.format import metric, schema, step_source, wire
from deepcontext.profiler.format.own_os import os
from deepcontext.profiler.format.peaks import cpu_model
from deepcontext.profiler.format.pid_space import pid_space
from deepcontext.profiler.format.status import ERROR_MARK
from deepcontext.profiler.recording import exemplars, steps_found, windows
from deepcontext.profiler.recording.rank import local_rank
from deepcontext.profiler.recording.source_text import Texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deepcontext._native import Counters, FrameColumns, StepsFound, TreeReading
    from deepcontext.profiler.format.metric import MetricDescriptor
    from deepcontext.profiler.format.status import Outcome
    from deepcontext.profiler.recording.collector import PhaseRule
    from deepcontext.profiler.recording.rank import Rank
    from deepcontext.profiler.recording.source_text import SourceText
    from deepcontext.profiler.recording.usage import Usage

# Distributions whose version a reader wants; looked up among the loaded modules only.
_VERSIONED_MODULES = ("torch", "torchvision", "jax", "jaxlib", "numpy", "triton", "transformers")

# Notes for the reader: each is written if one of its counters is not 0.
_NOTES = {
    (
        "contexts_refused",
    ): "the tree reached its limit of nodes: {contexts_refused} look-ups of new "
    "call paths were counted one level up; raise it with --node-limit, or node_limit of "
    "deepcontext.start",
    ("names_refused",): "names of scopes and operators have taken 64 MiB: since then, "
    "at least {names_refused} events with new names count as '(other names)'; do not put values "
    "that change from call to call into names",
    ("functions_refused",): "names and line tables of functions have taken 64 MiB: "
    "{functions_refused} functions that were made since then count as '(other functions)'",
    ("threads_joined",): "{threads_joined} threads are joined as 'other threads': the records of "
    "ended threads with distinct names have reached their limit of 64 MiB; give threads of one kind "
    "the same name",
    ("levels_refused", "paths_cut"): "very deep stacks: {levels_refused} operators were not "
    "recorded and {paths_cut} Python paths were cut",
    ("scopes_refused",): "{scopes_refused} scopes and ranges were not recorded, because 512 others "
    "were open on their thread: what ran in them counts as inside the 512th; close them, or look "
    "for generators that are kept without being finished",
    ("timeline_threads_refused",): "{timeline_threads_refused} threads have no time line: the last "
    "events of all threads have taken 48 MiB",
    ("exemplars_refused",): "{exemplars_refused} steps have no time line: those of the others have "
    "taken 16 MiB",
    ("lost_events",): "memory ran out: {lost_events} events of the profiler's hooks were not "
    "recorded",
    ("clock_steps_back",): "the processor's clock stepped back {clock_steps_back} times: these "
    "calls count with 0 ns (the clocks of the cores may not be synchronised)",
    ("backward_links_missed",): "{backward_links_missed} backward operators were not found under "
    "their forward operator (it ran before the session started, or too many were alive at once)",
    (
        "unrecorded_children",
    ): "{unrecorded_children} forked child processes (data loading workers?) "
    "were not recorded: --children frameworks records up to 64 of a process",
}


@dataclass(frozen=True, slots=True)
class Capture:
    """One moment of a run.

    Attributes:
        reading: the merged tree.
        counters: what the recording threads counted.
        outcomes: the outcome of each collector, by its name.
        phase_rules: phases that frames imply.
        usage: time and memory of the process.
        exit_reason: why the capture was taken: "exit", "snapshot", a signal's name.
        steps: what ends a step, their number, and the times between the ends of two steps.
        forked_children: processes forked by the program.
        unrecorded_children: number of these that record nothing.
        child_counters: what is known about children without profiles, if children are recorded.
        options: how the session was set up.
        script: what the launcher was asked to run; "" when the program started the session itself.
        cwd: working directory at the start.
        rank: which process of a job this is.
        parent_pid: the nearest process above this one that has a profile, or else the one that started it.
        notes: what a reader must know before trusting the figures.
        metrics: what the rows of the reading mean.
        sections: named payloads of the collectors.
        source_text: reads the text of source lines; None leaves it out.
    """

    reading: TreeReading
    counters: Counters
    outcomes: Mapping[str, Outcome]
    phase_rules: Sequence[PhaseRule]
    usage: Usage
    exit_reason: str
    steps: StepsFound
    forked_children: int
    unrecorded_children: int
    options: Mapping[str, object]
    script: str = ""
    cwd: str = ""
    child_counters: Mapping[str, int] = field(default_factory=dict)
    rank: Rank | None = None
    parent_pid: int = 0
    notes: Sequence[str] = ()
    metrics: Sequence[MetricDescriptor] = metric.KNOWN_METRICS
    sections: Mapping[str, bytes] = field(default_factory=dict)
    source_text: SourceText | None = None
    _encoded: list[bytes] = field(init=False, repr=False, default_factory=list)

    @property
    def errors(self) -> tuple[str, ...]:
        """Kinds of figures that are missing completely, according to the collectors."""
        notes = (note for outcome in self.outcomes.values() for note in outcome.notes)
        return tuple(note for note in notes if note.startswith(ERROR_MARK))

    def encode(self) -> bytes:
        """Return the bytes of a .dcprof file, made at the first call."""
        if not self._encoded:
            self._encoded.append(self._encode())
        return self._encoded[0]

    def _encode(self) -> bytes:
        frames = self.reading.frame_columns()
        nodes = self.reading.node_columns(frame_phases(frames, self.phase_rules))
        texts = self.source_text.of(frames) if self.source_text else Texts({})
        return wire.encode_file({
            "strings": frames["strings"],
            "frames": {
                "kind": wire.column("UINT8", frames["kind"]),
                "name": wire.column("UINT32", frames["name"]),
                "file": wire.column("UINT32", frames["file"]),
                "line": wire.column("UINT32", frames["line"]),
            },
            "nodes": {
                "parent": wire.column("INT32", nodes["parent"]),
                "frame": wire.column("UINT32", nodes["frame"]),
                "phase": wire.column("UINT8", nodes["phase"]),
                "subtree_end": wire.column("INT32", nodes["subtree_end"]),
            },
            "metrics": self._metric_messages(),
            "run": self._run(),
            "trust": self._trust(texts),
            "sections": self._sections(len(nodes["phase"]), texts),
        })

    def _sections(self, node_count: int, texts: Texts) -> dict[str, bytes]:
        return {
            **self.sections,
            **texts.sections,
            step_source.SECTION: steps_found.section(self.steps),
            **windows.section(self.reading, node_count),
            **exemplars.section(self.reading, node_count),
        }

    def _metric_messages(self) -> Iterator[dict[str, Any]]:
        """Yield one metric at a time, so that only columns of nodes are in memory unpacked."""
        recorded = set(self.reading.metric_names())
        nodes: dict[bytes, dict[str, Any]] = {}
        for known in {known.name: known for known in self.metrics}.values():
            if known.name == metric.STEP_TIME_NS.name and self.steps["count"]:
                yield _metric_message(known, _root_row(self.steps).items(), nodes)
            elif known.name in recorded:
                fields = self.reading.metric_fields(known.name)
                columns = (
                    (field, self.reading.metric_column(known.name, field)) for field in fields
                )
                yield _metric_message(known, columns, nodes)

    def _run(self) -> dict[str, Any]:
        rank, local = self.rank, local_rank()
        return {
            "command": list(sys.orig_argv),
            "script": self.script,
            "cwd": self.cwd,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": f"{sys.platform} {os.uname().release} {os.uname().machine}",
            "hostname": os.uname().nodename,
            "cpu_model": cpu_model(),
            "cpu_count": len(os.sched_getaffinity(0)),
            "frameworks": _versions(),
            "pid": os.getpid(),
            "exit_reason": self.exit_reason,
            "steps": steps_found.marked(self.steps),
            "options": {name: str(value) for name, value in self.options.items()},
            "rank": rank.number if rank else 0,
            "ranks": rank.of if rank else 0,
            "rank_source": rank.source if rank else "",
            "attempt": local.attempt,
            "local_rank": local.number,
            "local_ranks": local.of,
            "pid_space": pid_space(),
            "parent_pid": self.parent_pid,
            "process_name": _process_name(),
            **asdict(self.usage),
        }

    def _trust(self, texts: Texts) -> dict[str, Any]:
        counters: dict[str, int] = {
            name: value for name, value in self.counters.items() if isinstance(value, int)
        }
        counters |= {"forked_children": self.forked_children, **self.child_counters}
        counters |= self.reading.cut_costs() | self.reading.exemplar_costs()
        for outcome in self.outcomes.values():
            counters |= outcome.counters
        samples = self.counters["hook_samples"]
        return {
            "collectors": [
                {
                    "name": name,
                    "status": outcome.status.value,
                    "reason": outcome.reason,
                    "details": {key: str(value) for key, value in outcome.details.items()},
                }
                for name, outcome in self.outcomes.items()
            ],
            "counters": counters,
            "hook_cost_ns_per_event": self.counters["hook_ns"] / samples if samples else None,
            "notes": [
                *self.notes,
                *texts.notes,
                *(note for outcome in self.outcomes.values() for note in outcome.notes),
                *_notes(counters | {"unrecorded_children": self.unrecorded_children}),
            ],
        }


def frame_phases(frames: FrameColumns, rules: Sequence[PhaseRule]) -> bytes:
    """Return the phase that each frame implies, uint8, 0 where it implies none."""
    strings = frames["strings"]
    names = array.array("I", frames["name"])
    files = array.array("I", frames["file"])
    by_kind: dict[int, list[PhaseRule]] = {}
    for rule in rules:
        by_kind.setdefault(rule.kind, []).append(rule)
    phases = bytearray(len(names))
    for row, kind in enumerate(frames["kind"]):
        for rule in by_kind.get(kind, ()):
            if rule.matches(strings[names[row]], strings[files[row]]):
                phases[row] = rule.phase
                break
    return bytes(phases)


def _root_row(steps: StepsFound) -> dict[str, bytes]:
    """Return step times as a row of the root, node 0."""
    return {
        "node": struct.pack("<I", 0),
        "count": struct.pack("<Q", steps["count"]),
        "total": struct.pack("<q", round(steps["total_ns"])),
        "minimum": struct.pack("<q", round(steps["minimum_ns"])),
        "maximum": struct.pack("<q", round(steps["maximum_ns"])),
        "m2": struct.pack("<d", steps["m2"]),
    }


def _metric_message(
    known: MetricDescriptor,
    columns: Iterable[tuple[str, bytes]],
    nodes: dict[bytes, dict[str, Any]],
) -> dict[str, Any]:
    """Return the message; `nodes` has the columns of nodes so far, many of which are alike."""

    def packed(name: str, data: bytes) -> dict[str, Any]:
        known_column = nodes.get(data) if name == "node" else None
        column = known_column or wire.column(schema.ROW_TYPES[name], data)
        if name == "node":
            nodes[data] = column
        return column

    return {
        "name": known.name,
        "unit": known.unit,
        "aggregation": known.aggregation,
        "description": known.description,
        **{name: packed(name, data) for name, data in columns},
    }


def _notes(counters: Mapping[str, int]) -> list[str]:
    """Return what the counters mean for a reader of the figures."""
    return [
        words.format_map(counters)
        for names, words in _NOTES.items()
        if any(counters[name] for name in names)
    ]


def _process_name() -> str:
    """Return the name of this process in `multiprocessing`; "" if it was started otherwise."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return ""
    try:
        return "" if process.parent_process() is None else str(process.current_process().name)
    except (AttributeError, NameError):  # a snapshot while another thread imports the module
        return ""


def _versions() -> dict[str, str]:
    versions = {}
    for name in _VERSIONED_MODULES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            versions[name] = str(version)
    return versions
