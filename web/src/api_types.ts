// Generated from src/deepcontext/ui/web/answers.py by tools/write_web_types.py; do not edit.

/** Something whose cost can be shown: the total of a metric, or the number of its events. */
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

/** What one collector did; as `CollectorReport`. */
export interface CollectorAnswer {
  name: string;
  status: string;
  reason: string;
  details: Record<string, string>;
}

/** One opened profile. */
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

/** What is open; the first question a page asks. */
export interface AboutAnswer {
  profiles: ProfileAnswer[];
  notices: string[];
}

/** The functions that the nodes of one answer name; `id` is a frame of the profile, or -1. */
export interface FunctionColumns {
  id: number[];
  name: string[];
  kind: string[];
  layer: string[];
  file: string[];
  line: number[];
  library: boolean[];
}

/** Nodes in depth-first pre-order, one entry a node in every column that is not empty. `value` is inclusive; `source` is the node of the profile. The columns of single calls are empty where calls are not timed, `before` and `after` where nothing is compared: `value` is then the larger side of each node, summed, so that widths add up. */
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

/** The part of a tree that is worth drawing. `above` leading nodes are the ancestors of the node that was zoomed in to. `left_out` nodes are narrower than half a pixel, or than what fits into an answer: `threshold` is the least value shown. */
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

/** Nodes whose name or file contains a text; `value` counts nested ones once. */
export interface FindAnswer {
  count: number;
  value: number;
  total: number;
  nodes: FoundNode[];
}

/** How the single calls are distributed, in ns; None where not recorded. */
export interface Calls {
  count: number;
  mean: number;
  deviation: number | null;
  minimum: number | null;
  maximum: number | null;
}

/** One group of a table; as `summary.Group`, with a frame that stands for it. */
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

/** What one node costs under one measure. */
export interface MeasureValue {
  measure: Measure;
  inclusive: number;
  exclusive: number;
  total: number;
}

/** How a metric that adds up over no tree is distributed at one node; None where not recorded. `largest` is the maximum over the node and all below it, None where the metric is no maximum. */
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

/** A line that a kernel computes; `shown` is the file as a person reads it. */
export interface FusedLine {
  file: string;
  shown: string;
  line: number;
}

/** What torch.compile fused into a kernel; `complete` says whether all its lines are known. */
export interface FusedKernel {
  name: string;
  operators: string[];
  lines: FusedLine[];
  complete: boolean;
}

/** All that is known of one node. */
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

/** A source file that the profile names, and what its lines cost by themselves. */
export interface FileRow {
  file: string;
  shown: string;
  library: boolean;
  exclusive: number;
}

/** Source files, the user's own first, the costliest first. */
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

/** What a line costs. */
export interface LineCost {
  line: number;
  function: string;
  inclusive: number;
  exclusive: number;
}

/** A source file with the cost of its lines; `note` says why the text is missing or doubtful. */
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

/** What the analyzers found; `stored` says whether it was read from the file or found now. */
export interface FindingsAnswer {
  stored: boolean;
  findings: FindingRow[];
}

/** A named payload of the file (findings, recompilations, memory, ...). */
export interface SectionAnswer {
  name: string;
  content: unknown;
}
