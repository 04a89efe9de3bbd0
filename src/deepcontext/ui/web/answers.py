"""What Python writes for the page besides columns, as dataclasses: the contract with `web/src/api_types.ts`.

The TypeScript types are generated from these classes (`tools/write_web_types.py`), and a test
compares them. Values are integers in the metric's unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from deepcontext.ui.measures import Measure  # noqa: TC001  write_web_types.py evaluates it


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Why a request was refused; sent with a status of 400 and above."""

    error: str


@dataclass(frozen=True, slots=True)
class OpenedAnswer:
    """The index of the profile that was sent."""

    file: int


@dataclass(frozen=True, slots=True)
class CollectorAnswer:
    """What one collector did; see `CollectorReport`."""

    name: str
    status: str
    reason: str
    details: dict[str, str]


@dataclass(frozen=True, slots=True)
class Calls:
    """Distribution of single calls, in ns; None where not recorded."""

    count: int
    mean: float
    deviation: float | None
    minimum: int | None
    maximum: int | None


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """A part of a whole, named as a reader sees it; it has the colour of a layer.

    `metric` is the measure that shows where the part is, "" for the one that is shown.
    """

    name: str
    value: int
    layer: str
    metric: str = ""


@dataclass(frozen=True, slots=True)
class PoolAnswer:
    """The memory of the host or of one device; `parts` add up to the peak.

    `growth_bytes` is counted over `growth_steps` steps, 0 if growth is not counted.
    """

    name: str
    peak_bytes: int
    live_bytes: int
    growth_bytes: int
    growth_steps: int
    parts: list[PartAnswer]


@dataclass(frozen=True, slots=True)
class VerdictAnswer:
    """What limits the run, a sentence; a `line` of 0 stands for no line."""

    text: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class PlaceAnswer:
    """The time of one line, without deeper lines of the program; a `line` of 0 stands for the rest."""

    file: str
    line: int
    text: str
    spent_on: str
    time_ns: int
    gpu_ns: int


@dataclass(frozen=True, slots=True)
class AccountAnswer:
    """The elapsed time of what is shown, divided completely: see `summaries.account` and `summaries.basis`.

    `steady` and `setup` say of which steps it is and what lies outside of them, `besides` what only some of
    them do, "" for a whole run. Times are divided by `steps`, 0 for none. `lines` have shares of
    `lines_whole_ns`, of which `base` says in words what it is. `gpu` is empty where no GPU worked, or where
    its idle time is unknown. `setup_lines` are those before the steady state, in sums, where they take at
    least half as long as the steady state. `whole_ns` is 0 where no time was recorded.
    """

    verdicts: list[VerdictAnswer]
    steady: str
    besides: str
    setup: str
    steps: int
    whole_ns: int
    groups: list[PartAnswer]
    gpu: list[PartAnswer]
    by_gpu: bool
    lines_whole_ns: int
    base: str
    lines: list[PlaceAnswer]
    others: list[PlaceAnswer]
    setup_whole_ns: int
    setup_lines: list[PlaceAnswer]


@dataclass(frozen=True, slots=True)
class ProfileAnswer:
    """One opened profile; `steps` is the distribution of the times of marked steps.

    `ranks` is the number of ranks of a merged profile, of which `wall_ns` is the mean and `steps` has the
    steps of all, 0 for one process; `roofline` whether the view of
    the roofline has something to show, or to say about how to record it; `kept_steps` is the number of steps
    of the time line. Without a `version` only the
    name is known: the answer to the question `profile` has the rest.
    """

    name: str
    version: str = ""
    command: list[str] = field(default_factory=list)
    script: str = ""
    cwd: str = ""
    exit_reason: str = ""
    start_unix_ns: int = 0
    wall_ns: int = 0
    node_count: int = 0
    facts: list[list[str]] = field(default_factory=list)
    steps: Calls | None = None
    memory: list[PoolAnswer] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    ranks: int = 0
    roofline: bool = False
    kept_steps: int = 0
    tables: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    collectors: list[CollectorAnswer] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    hook_cost_ns_per_event: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process of a job; a child follows its parent, one deeper.

    `file` is the index of its profile, `group` that of its group, `rank` its rank, -1 for none. In
    operators the host spent `operator_ns`; between operators it ran or waited (sampled). At most
    `uncovered_ns` passed between the profile's last snapshot and the end, -1 for a profile that the
    process closed.
    """

    file: int
    name: str
    pid: int
    depth: int
    group: int
    rank: int
    host: str
    program: str
    wall_ns: int
    cpu_ns: int
    operator_ns: int
    running_ns: int
    waiting_ns: int
    ended: str
    uncovered_ns: int
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Similar processes that a list shows as one row; `busiest` and `typical` index the job's processes.

    `bins` are the numbers of processes by processor time, empty for few processes.
    """

    name: str
    cpu_ns: int
    busiest: int
    typical: int
    bins: list[int]
    ended: str


@dataclass(frozen=True, slots=True)
class RoleRow:
    """All processes of one role, or of the job; `file` is their common profile, -1 for none."""

    name: str
    file: int
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """The processes of a job; the first of `roles` is the whole job."""

    name: str
    roles: list[RoleRow]
    groups: list[ProcessGroup]
    processes: list[ProcessRow]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class AboutAnswer:
    """What is open; the first question a page asks. The first `compared` profiles are compared."""

    profiles: list[ProfileAnswer]
    notices: list[str]
    jobs: list[JobAnswer] = field(default_factory=list)
    compared: int = 0


@dataclass(frozen=True, slots=True)
class RankName:
    """One rank of a merged profile; `file` is the name of its own profile, "" where not known."""

    rank: int
    host: str
    file: str


@dataclass(frozen=True, slots=True)
class RankTimes:
    """What the page draws of a row of the table of ranks; of a value over all, the rank is -1.

    `name` says which; "" for one rank of a table with all. `parts_ns` are what the rank did, as
    `RanksAnswer.parts` names it; the times of collectives are part of these. -1: not known.
    """

    name: str
    rank: int
    parts_ns: list[int]
    collective_ns: int
    waited_ns: int


@dataclass(frozen=True, slots=True)
class RankBins:
    """How many ranks worked how long: `bins` are equal parts of the range, the shortest first."""

    least_ns: int
    most_ns: int
    bins: list[int]


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A line of source; `shown` is the file's path shortened for display, "" for no line."""

    file: str
    shown: str
    line: int


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column; numbers are aligned to the right."""

    heading: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """A table of `deepcontext.ui.sections`: a cell is text, a `LinePlace`, or bars as parts of 1.

    Without rows, the note says why.
    """

    title: str
    note: str
    columns: list[TableColumn]
    rows: list[list[Any]]


@dataclass(frozen=True, slots=True)
class LateRank:
    """How long one rank made the others wait, by parts of the run; see `RankDelays`."""

    rank: int
    over_time_ns: list[int]


@dataclass(frozen=True, slots=True)
class RanksAnswer:
    """The ranks of a merged profile. The notes say what figures are, or why there are none.

    `bins` is None for few ranks. `metrics` are those whose values by rank are columns, as logarithms:
    code c is exp((c - 1) * `step`), 0 is none. Values of nodes are those of `of_ranks` ranks together: of
    1 where they are means.
    """

    fact: str
    note: str
    parts: list[str]
    names: list[RankName]
    rows: list[RankTimes]
    times: TableAnswer
    bins: RankBins | None
    collectives_note: str
    late_over_time: list[LateRank]
    late: TableAnswer
    exchanges: TableAnswer
    lines: TableAnswer
    metrics: list[str]
    step: float
    of_ranks: int


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A line, module or operator; see `Point`.

    `name` is the function of a line. `limit` names what limits it, `limit_share` is the part of its time
    for which that holds, `kind` indexes `RooflineAnswer.kinds`. `of_peak` is None where it is not known,
    or says nothing because the time is that of launches.
    """

    name: str
    place: LinePlace
    node: int
    kind: int
    limit: str
    limit_share: float
    time_ns: int
    calls: int
    flops: float
    bytes: float
    of_peak: float | None


@dataclass(frozen=True, slots=True)
class RooflineGroup:
    """The points of one kind, most time first; `count` is the number of all, of which the first are here."""

    by: str
    count: int
    points: list[RooflinePoint]


@dataclass(frozen=True, slots=True)
class RooflineCeiling:
    """The most that products of one element type attain."""

    type: str
    flops_per_second: float


@dataclass(frozen=True, slots=True)
class RooflineChart:
    """The points of one framework under its roof; see `Roofline`.

    `notes` are the sentences of the report. Without peaks there are no ceilings and `bytes_per_second` is
    0. `step_flops_per_second` is the rate over a whole step, and `mfu` its share of the peak; 0 and None
    where they are not known. `metric` is the measure by which nodes have boxes, "" for any.
    """

    title: str
    metric: str
    notes: list[str]
    ceilings: list[RooflineCeiling]
    bytes_per_second: float
    step_flops_per_second: float
    mfu: float | None
    time_ns: int
    groups: list[RooflineGroup]


@dataclass(frozen=True, slots=True)
class RooflineAnswer:
    """How far lines, modules and operators are from the roof; `missing` says what to run for more."""

    kinds: list[str]
    charts: list[RooflineChart]
    missing: str


@dataclass(frozen=True, slots=True)
class StepPart:
    """The times of consecutive steps, ns."""

    count: int
    total_ns: int
    minimum_ns: int
    maximum_ns: int


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A step that was kept whole.

    `cause` says where it took most more time than usual, `paths` which call paths did, the first one most.
    """

    number: int
    begin_ns: int
    duration_ns: int
    why: str
    cause: str
    paths: list[str]


@dataclass(frozen=True, slots=True)
class StepWindow:
    """A window of the run: its first and its last step, from 1, and whether a part that is shown has it."""

    first: int
    last: int
    kind: str
    shown: bool


@dataclass(frozen=True, slots=True)
class TimeLineAnswer:
    """The times of all steps of a run but the first, in order, its windows, and the steps that were kept."""

    rule: str
    parts: list[StepPart]
    windows: list[StepWindow]
    steps: list[KeptStep]


@dataclass(frozen=True, slots=True)
class SpanNode:
    """What spans of one node have in common; `place` is the line of the user's code."""

    node: int
    name: str
    layer: str
    phase: str
    place: LinePlace
    modules: str


@dataclass(frozen=True, slots=True)
class LaneAnswer:
    """The spans of a thread or stream by begin, the outer one first; see `Lane`.

    `node` indexes `StepAnswer.nodes`; `begin_step` is the begin less that of the span before, of the first
    one the begin, which is negative for a span that began before the step.
    """

    name: str
    is_device: bool
    known_from_ns: int
    node: list[int]
    begin_step: list[int]
    duration_ns: list[int]


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """One kept step."""

    number: int
    duration_ns: int
    nodes: list[SpanNode]
    lanes: list[LaneAnswer]


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """What torch.compile or XLA fused into a kernel; `complete` if no more lines can be known."""

    name: str
    operators: list[str]
    lines: list[LinePlace]
    complete: bool


@dataclass(frozen=True, slots=True)
class TextPart:
    """Consecutive lines of a file; `first` is 1-based."""

    first: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a source file, or the parts of it around lines with a cost.

    `note`: why the text is missing or may be wrong; `length`: number of lines of the whole text.
    """

    note: str
    length: int
    parts: list[TextPart]


@dataclass(frozen=True, slots=True)
class FindingText:
    """One part of a finding: where, seen, gain, do, misleads when."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One thing to change; `nodes` are nodes of the profile, the costliest first."""

    id: str
    severity: str
    title: str
    gain: str
    texts: list[FindingText]
    nodes: list[int]


@dataclass(frozen=True, slots=True)
class FindingsAnswer:
    """What the analyzers found; `stored` if the findings were read from the file."""

    stored: bool
    findings: list[FindingRow]


@dataclass(frozen=True, slots=True)
class SectionAnswer:
    """A named payload of the file (findings, recompilations, memory, ...)."""

    name: str
    content: Any
