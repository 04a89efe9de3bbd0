// Generated from src/deepcontext/ui/web/answers.py by tools/write_web_types.py; do not edit.

/** A quantity that a view can show: the total of a metric, or the number of its events. */
export interface Measure {
  key: string;
  label: string;
  unit: string;
  description: string;
}

/** Why a request was refused; sent with a status of 400 and above. */
export interface ErrorAnswer {
  error: string;
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

/** The memory of the host or of one device; `peak_roles` add up to the peak. `growth_bytes` is counted over `growth_steps` steps, 0 if growth is not counted. */
export interface PoolAnswer {
  name: string;
  peak_bytes: number;
  live_bytes: number;
  growth_bytes: number;
  growth_steps: number;
  peak_roles: Record<string, number>;
}

/** One opened profile; `steps` is the distribution of the times of marked steps. Without a `version` only the name is known: the answer to the question `profile` has the rest. */
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
  pivots: string[];
  tables: string[];
  sections: string[];
  warnings: string[];
  collectors: CollectorAnswer[];
  counters: Record<string, number>;
  hook_cost_ns_per_event: number | null;
}

/** One process of a job; a child follows its parent, one deeper. `file` is the index of its profile, `group` that of its group, -1 for none. In operators the host spent `operator_ns`; between operators it ran or waited (sampled). At most `uncovered_ns` passed between the profile's last snapshot and the end, -1 for a profile that the process closed. */
export interface ProcessRow {
  file: number;
  name: string;
  pid: number;
  depth: number;
  group: number;
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

/** Alike processes that a list shows as one row; `busiest` and `typical` count in the job's processes. `bins` are the numbers of processes by processor time, empty for few processes. */
export interface ProcessGroup {
  name: string;
  cpu_ns: number;
  busiest: number;
  typical: number;
  bins: number[];
  ended: string;
}

/** All processes of one role, or of the job; `file` is the profile of them together, -1 for none. */
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

/** What is open; the first question a page asks. */
export interface AboutAnswer {
  profiles: ProfileAnswer[];
  notices: string[];
  jobs: JobAnswer[];
}

/** The functions of the nodes of one answer; `id` is a frame of the profile, or -1. */
export interface FunctionColumns {
  id: number[];
  name: string[];
  kind: string[];
  layer: string[];
  file: string[];
  line: number[];
  library: boolean[];
}

/** Nodes in depth-first pre-order; columns that are not empty have one entry for each node. `value` is inclusive; `source` is the node of the profile. The columns of single calls are empty where calls are not timed, `before` and `after` where nothing is compared. In a comparison `value` is the inclusive sum of each node's larger side, so that widths add up. */
export interface NodeColumns {
  depth: number[];
  function: number[];
  value: number[];
  exclusive: number[];
  source: number[];
  phase: string[];
  calls: number[];
  mean: number[];
  deviation: number[];
  minimum: number[];
  maximum: number[];
  before: number[];
  after: number[];
}

/** The visible part of a tree. The first `above` nodes are the ancestors of the zoomed node. `left_out` nodes are narrower than half a pixel, or did not fit into the answer; `threshold` is the smallest value shown. */
export interface FlameAnswer {
  unit: string;
  above: number;
  left_out: number;
  threshold: number;
  nodes: NodeColumns;
  functions: FunctionColumns;
  total: number;
  node_count: number;
  total_before: number;
  total_after: number;
}

/** One node whose name matches. */
export interface FoundNode {
  source: number;
  value: number;
}

/** Nodes whose name or file contains a text; `value` counts nested nodes once. */
export interface FindAnswer {
  count: number;
  value: number;
  total: number;
  nodes: FoundNode[];
}

/** One group of a table; see `summaries.groups.Group`; `id` is a frame that represents it. */
export interface TableRow {
  id: number;
  name: string;
  layer: string;
  file: string;
  line: number;
  inclusive: number;
  exclusive: number;
  phases: number[];
  contexts: number;
  calls: Calls | null;
}

/** A table; `phases` names the columns of each row's `phases`. */
export interface TableAnswer {
  unit: string;
  total: number;
  row_count: number;
  match_count: number;
  phases: string[];
  rows: TableRow[];
}

/** The cost of one node under one measure. */
export interface MeasureValue {
  measure: Measure;
  inclusive: number;
  exclusive: number;
  total: number;
}

/** Distribution at one node of a metric that is not a sum; None where not recorded. `largest` is the maximum over the node and its descendants, None unless the metric is a maximum. */
export interface MetricValue {
  name: string;
  label: string;
  unit: string;
  description: string;
  count: number;
  largest: number | null;
  mean: number;
  deviation: number | null;
  minimum: number | null;
  maximum: number | null;
}

/** One frame of a call path. */
export interface PathStep {
  source: number;
  id: number;
  name: string;
  layer: string;
  file: string;
  line: number;
}

/** The part of a node that belongs to one line of its function. */
export interface LineValue {
  line: number;
  inclusive: number;
}

/** The part of a node that belongs to one phase. */
export interface PhaseValue {
  phase: string;
  value: number;
}

/** A line that a kernel computes; `shown` is the file's path shortened for display. */
export interface FusedLine {
  file: string;
  shown: string;
  line: number;
}

/** What torch.compile fused into a kernel; `complete` if all lines are known. */
export interface FusedKernel {
  name: string;
  operators: string[];
  lines: FusedLine[];
  complete: boolean;
}

/** Everything known about one node. */
export interface NodeAnswer {
  source: number;
  id: number;
  name: string;
  kind: string;
  layer: string;
  file: string;
  line: number;
  contexts: number;
  path: PathStep[];
  values: MeasureValue[];
  own: MetricValue[];
  phases: PhaseValue[];
  lines: LineValue[];
  fused: FusedKernel[];
  calls: Calls | null;
}

/** A source file named in the profile, and the exclusive cost of its lines. */
export interface FileRow {
  file: string;
  shown: string;
  library: boolean;
  exclusive: number;
}

/** Source files: user files first, the costliest first. */
export interface FilesAnswer {
  unit: string;
  total: number;
  files: FileRow[];
}

/** Consecutive lines of a file; `first` is 1-based. */
export interface TextPart {
  first: number;
  lines: string[];
}

/** The cost of a line. */
export interface LineCost {
  line: number;
  function: string;
  inclusive: number;
  exclusive: number;
}

/** A source file with the cost of its lines; `note`: why the text is missing or may be wrong. */
export interface SourceAnswer {
  file: string;
  shown: string;
  unit: string;
  total: number;
  note: string;
  parts: TextPart[];
  costs: LineCost[];
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
