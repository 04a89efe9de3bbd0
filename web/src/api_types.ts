// Generated from src/deepcontext/ui/web/answers.py by tools/write_web_types.py; do not edit.

/** A quantity that a view can show: the total of a metric, or the number of its events. `group` is the heading that a list of measures puts it under. `by_line`: a tree shows it by line unless the user decides otherwise, because it lies between operators, where only a line says what the program did, or because it is memory at the peak, which is changed where a line allocates it. */
export interface Measure {
  key: string;
  label: string;
  unit: string;
  description: string;
  group: string;
  by_line: boolean;
}

/** Why a request was refused; sent with a status of 400 and above. */
export interface ErrorAnswer {
  error: string;
}

/** The index of the profile that was sent. */
export interface OpenedAnswer {
  file: number;
}

/** What one collector did; see `CollectorReport`. */
export interface CollectorAnswer {
  name: string;
  status: string;
  reason: string;
  details: Record<string, string>;
}

/** Distribution of single calls, in ns; None where not recorded. */
export interface Calls {
  count: number;
  mean: number;
  deviation: number | null;
  minimum: number | null;
  maximum: number | null;
}

/** A part of a whole, named as a reader sees it; it has the colour of a layer. `metric` is the measure that shows where the part is, "" for the one that is shown. */
export interface PartAnswer {
  name: string;
  value: number;
  layer: string;
  metric: string;
}

/** The memory of the host or of one device; `parts` add up to the peak. `growth_bytes` is counted over `growth_steps` steps, 0 if growth is not counted. */
export interface PoolAnswer {
  name: string;
  peak_bytes: number;
  live_bytes: number;
  growth_bytes: number;
  growth_steps: number;
  parts: PartAnswer[];
}

/** What limits the run, a sentence; a `line` of 0 stands for no line. */
export interface VerdictAnswer {
  text: string;
  file: string;
  line: number;
}

/** The time of one line, without deeper lines of the program; a `line` of 0 stands for the rest. */
export interface PlaceAnswer {
  file: string;
  line: number;
  text: string;
  spent_on: string;
  time_ns: number;
  gpu_ns: number;
}

/** The elapsed time of what is shown, divided completely: see `summaries.account` and `summaries.basis`. `steady` and `setup` say of which steps it is and what lies outside of them, `besides` what only some of them do, "" for a whole run. Times are divided by `steps`, 0 for none. `lines` have shares of `lines_whole_ns`, of which `base` says in words what it is. `gpu` is empty where no GPU worked, or where its idle time is unknown. `setup_lines` are those before the steady state, in sums, where they take at least half as long as the steady state. `whole_ns` is 0 where no time was recorded. */
export interface AccountAnswer {
  verdicts: VerdictAnswer[];
  steady: string;
  besides: string;
  setup: string;
  steps: number;
  whole_ns: number;
  groups: PartAnswer[];
  gpu: PartAnswer[];
  by_gpu: boolean;
  lines_whole_ns: number;
  base: string;
  lines: PlaceAnswer[];
  others: PlaceAnswer[];
  setup_whole_ns: number;
  setup_lines: PlaceAnswer[];
}

/** One opened profile; `steps` is the distribution of the times of marked steps. `ranks` is the number of ranks of a merged profile, of which `wall_ns` is the mean and `steps` has the steps of all, 0 for one process; `roofline` whether the view of the roofline has something to show, or to say about how to record it; `kept_steps` is the number of steps of the time line. Without a `version` only the name is known: the answer to the question `profile` has the rest. */
export interface ProfileAnswer {
  name: string;
  version: string;
  command: string[];
  script: string;
  cwd: string;
  exit_reason: string;
  start_unix_ns: number;
  wall_ns: number;
  node_count: number;
  facts: string[][];
  steps: Calls | null;
  memory: PoolAnswer[];
  measures: Measure[];
  layers: string[];
  phases: string[];
  ranks: number;
  roofline: boolean;
  kept_steps: number;
  tables: string[];
  sections: string[];
  warnings: string[];
  collectors: CollectorAnswer[];
  counters: Record<string, number>;
  hook_cost_ns_per_event: number | null;
}

/** One process of a job; a child follows its parent, one deeper. `file` is the index of its profile, `group` that of its group, `rank` its rank, -1 for none. In operators the host spent `operator_ns`; between operators it ran or waited (sampled). At most `uncovered_ns` passed between the profile's last snapshot and the end, -1 for a profile that the process closed. */
export interface ProcessRow {
  file: number;
  name: string;
  pid: number;
  depth: number;
  group: number;
  rank: number;
  host: string;
  program: string;
  wall_ns: number;
  cpu_ns: number;
  operator_ns: number;
  running_ns: number;
  waiting_ns: number;
  ended: string;
  uncovered_ns: number;
  warnings: string[];
}

/** Similar processes that a list shows as one row; `busiest` and `typical` index the job's processes. `bins` are the numbers of processes by processor time, empty for few processes. */
export interface ProcessGroup {
  name: string;
  cpu_ns: number;
  busiest: number;
  typical: number;
  bins: number[];
  ended: string;
}

/** All processes of one role, or of the job; `file` is their common profile, -1 for none. */
export interface RoleRow {
  name: string;
  file: number;
  cpu_ns: number;
}

/** The processes of a job; the first of `roles` is the whole job. */
export interface JobAnswer {
  name: string;
  roles: RoleRow[];
  groups: ProcessGroup[];
  processes: ProcessRow[];
  notes: string[];
}

/** What is open; the first question a page asks. The first `compared` profiles are compared. */
export interface AboutAnswer {
  profiles: ProfileAnswer[];
  notices: string[];
  jobs: JobAnswer[];
  compared: number;
}

/** One rank of a merged profile; `file` is the name of its own profile, "" where not known. */
export interface RankName {
  rank: number;
  host: string;
  file: string;
}

/** What the page draws of a row of the table of ranks; of a value over all, the rank is -1. `name` says which; "" for one rank of a table with all. `parts_ns` are what the rank did, as `RanksAnswer.parts` names it; the times of collectives are part of these. -1: not known. */
export interface RankTimes {
  name: string;
  rank: number;
  parts_ns: number[];
  collective_ns: number;
  waited_ns: number;
}

/** How many ranks worked how long: `bins` are equal parts of the range, the shortest first. */
export interface RankBins {
  least_ns: number;
  most_ns: number;
  bins: number[];
}

/** A line of source; `shown` is the file's path shortened for display, "" for no line. */
export interface LinePlace {
  file: string;
  shown: string;
  line: number;
}

/** A column; numbers are aligned to the right. */
export interface TableColumn {
  heading: string;
  is_number: boolean;
}

/** A table of `deepcontext.ui.sections`: a cell is text, a `LinePlace`, or bars as parts of 1. Without rows, the note says why. */
export interface TableAnswer {
  title: string;
  note: string;
  columns: TableColumn[];
  rows: unknown[][];
}

/** How long one rank made the others wait, by parts of the run; see `RankDelays`. */
export interface LateRank {
  rank: number;
  over_time_ns: number[];
}

/** The ranks of a merged profile. The notes say what figures are, or why there are none. `bins` is None for few ranks. `metrics` are those whose values by rank are columns, as logarithms: code c is exp((c - 1) * `step`), 0 is none. Values of nodes are those of `of_ranks` ranks together: of 1 where they are means. */
export interface RanksAnswer {
  fact: string;
  note: string;
  parts: string[];
  names: RankName[];
  rows: RankTimes[];
  times: TableAnswer;
  bins: RankBins | null;
  collectives_note: string;
  late_over_time: LateRank[];
  late: TableAnswer;
  exchanges: TableAnswer;
  lines: TableAnswer;
  metrics: string[];
  step: number;
  of_ranks: number;
}

/** A line, module or operator; see `Point`. `name` is the function of a line. `limit` names what limits it, `limit_share` is the part of its time for which that holds, `kind` indexes `RooflineAnswer.kinds`. `of_peak` is None where it is not known, or says nothing because the time is that of launches. */
export interface RooflinePoint {
  name: string;
  place: LinePlace;
  node: number;
  kind: number;
  limit: string;
  limit_share: number;
  time_ns: number;
  calls: number;
  flops: number;
  bytes: number;
  of_peak: number | null;
}

/** The points of one kind, most time first; `count` is the number of all, of which the first are here. */
export interface RooflineGroup {
  by: string;
  count: number;
  points: RooflinePoint[];
}

/** The most that products of one element type attain. */
export interface RooflineCeiling {
  type: string;
  flops_per_second: number;
}

/** The points of one framework under its roof; see `Roofline`. `notes` are the sentences of the report. Without peaks there are no ceilings and `bytes_per_second` is 0. `step_flops_per_second` is the rate over a whole step, and `mfu` its share of the peak; 0 and None where they are not known. `metric` is the measure by which nodes have boxes, "" for any. */
export interface RooflineChart {
  title: string;
  metric: string;
  notes: string[];
  ceilings: RooflineCeiling[];
  bytes_per_second: number;
  step_flops_per_second: number;
  mfu: number | null;
  time_ns: number;
  groups: RooflineGroup[];
}

/** How far lines, modules and operators are from the roof; `missing` says what to run for more. */
export interface RooflineAnswer {
  kinds: string[];
  charts: RooflineChart[];
  missing: string;
}

/** The times of consecutive steps, ns. */
export interface StepPart {
  count: number;
  total_ns: number;
  minimum_ns: number;
  maximum_ns: number;
}

/** A step that was kept whole. `cause` says where it took most more time than usual, `paths` which call paths did, the first one most. */
export interface KeptStep {
  number: number;
  begin_ns: number;
  duration_ns: number;
  why: string;
  cause: string;
  paths: string[];
}

/** A window of the run: its first and its last step, from 1, and whether a part that is shown has it. */
export interface StepWindow {
  first: number;
  last: number;
  kind: string;
  shown: boolean;
}

/** The times of all steps of a run but the first, in order, its windows, and the steps that were kept. */
export interface TimeLineAnswer {
  rule: string;
  parts: StepPart[];
  windows: StepWindow[];
  steps: KeptStep[];
}

/** What spans of one node have in common; `place` is the line of the user's code. */
export interface SpanNode {
  node: number;
  name: string;
  layer: string;
  phase: string;
  place: LinePlace;
  modules: string;
}

/** The spans of a thread or stream by begin, the outer one first; see `Lane`. `node` indexes `StepAnswer.nodes`; `begin_step` is the begin less that of the span before, of the first one the begin, which is negative for a span that began before the step. */
export interface LaneAnswer {
  name: string;
  is_device: boolean;
  known_from_ns: number;
  node: number[];
  begin_step: number[];
  duration_ns: number[];
}

/** One kept step. */
export interface StepAnswer {
  number: number;
  duration_ns: number;
  nodes: SpanNode[];
  lanes: LaneAnswer[];
}

/** What torch.compile or XLA fused into a kernel; `complete` if no more lines can be known. */
export interface FusedKernel {
  name: string;
  operators: string[];
  lines: LinePlace[];
  complete: boolean;
}

/** Consecutive lines of a file; `first` is 1-based. */
export interface TextPart {
  first: number;
  lines: string[];
}

/** The text of a source file, or the parts of it around lines with a cost. `note`: why the text is missing or may be wrong; `length`: number of lines of the whole text. */
export interface SourceText {
  note: string;
  length: number;
  parts: TextPart[];
}

/** One part of a finding: where, seen, gain, do, misleads when. */
export interface FindingText {
  name: string;
  text: string;
}

/** One thing to change; `nodes` are nodes of the profile, the costliest first. */
export interface FindingRow {
  id: string;
  severity: string;
  title: string;
  gain: string;
  texts: FindingText[];
  nodes: number[];
}

/** What the analyzers found; `stored` if the findings were read from the file. */
export interface FindingsAnswer {
  stored: boolean;
  findings: FindingRow[];
}

/** A named payload of the file (findings, recompilations, memory, ...). */
export interface SectionAnswer {
  name: string;
  content: unknown;
}
