// The engine's answers. Values are whole numbers in the measure's unit; -1 means "not recorded" in
// columns of numbers that are never negative. Columns hold plain arrays.

import type { Calls, FusedKernel, Measure, RankName, TextPart } from "../api_types";

/** The functions of the nodes of one answer; `id` is a frame of the profile, or -1. */
export interface FunctionColumns {
  id: number[];
  name: string[];
  kind: string[];
  layer: string[];
  file: string[];
  line: number[];
}

/**
 * Nodes in depth-first pre-order; columns that are not empty have one entry for each node. `value`
 * is inclusive; `source` is the node of the profile. The columns of single calls are empty where
 * calls are not timed, `sides` where nothing is compared. In a comparison `sides` has for each node
 * the value of each profile, null where the profile lacks the node, and `value` is the inclusive sum
 * of each node's largest side, so that widths add up.
 */
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
  sides: (number | null)[][];
  /** Where the ranks are asked for: the mean of their costs, the most, and whose that is; -1 for unknown. */
  mean_of_ranks: number[];
  most: number[];
  most_rank: number[];
}

/**
 * The visible part of a tree. The first `above` nodes are the ancestors of the zoomed node.
 * `left_out` nodes are narrower than half a pixel, or did not fit into the answer; `threshold` is
 * the smallest value shown.
 */
export interface FlameAnswer {
  unit: string;
  above: number;
  left_out: number;
  threshold: number;
  nodes: NodeColumns;
  functions: FunctionColumns;
  total: number;
  /** What each compared profile has in all, not normalised. */
  totals: number[];
}

/** One node whose name matches; `id` is a frame of its function. */
export interface FoundNode {
  source: number;
  id: number;
  value: number;
}

/** Nodes whose name or file contains a text, the costliest first; `value` counts nested nodes once. */
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

/** A table; `phases` names the columns of each row's `phases`; `match_value` is the self cost of all that match. */
export interface TableAnswer {
  unit: string;
  total: number;
  match_count: number;
  match_value: number;
  phases: string[];
  rows: TableRow[];
}

/** A row of two profiles; the change is of self cost. */
export interface Change {
  /** The row of the other profile, or of the base if it is gone. */
  row: TableRow;
  before: number | null;
  after: number | null;
  change: number;
  /** The change that is left if the whole of the other is scaled to that of the base. */
  scaled: number;
}

/** The largest changes; `ratio` is that of the totals if nearly everything has changed by it. */
export interface ChangesAnswer {
  unit: string;
  total: number;
  ratio: number | null;
  match_count: number;
  match_value: number;
  rows: Change[];
}

/** What a node costs on each rank; without values, `why` says why. */
export interface RankValues {
  names: readonly RankName[];
  values: number[] | null;
  why: string;
}

/** The cost of one node under one measure. */
export interface MeasureValue {
  measure: Measure;
  inclusive: number;
  exclusive: number;
  total: number;
}

/**
 * Distribution at one node of a metric that is not a sum; None where not recorded. `largest` is
 * the maximum over the node and its descendants, None unless the metric is a maximum.
 */
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

/** Everything known about one node, or about all nodes of a function. */
export interface NodeAnswer {
  id: number;
  name: string;
  kind: string;
  file: string;
  line: number;
  contexts: number;
  /** Library functions and lines whose cost the node received, because they are not shown. */
  hidden: number;
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
