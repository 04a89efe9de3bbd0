// Where the spans of a step lie: rows by depth, lane by lane. Pure: no pixels across, no state.

import type { LaneAnswer, SpanNode, StepAnswer } from "../api_types";

/** Pixels. */
export const ROW = 18;
const TITLE = 20;
const BETWEEN = 8;

/** A run of outermost spans of one line of the user's code. */
export interface LineRun {
  readonly begin: number;
  readonly end: number;
  readonly node: number;
}

/** One thread or stream. Times in ns since the step's begin; spans by begin, the outer one first. */
export interface PlacedLane {
  readonly name: string;
  readonly isDevice: boolean;
  readonly knownFrom: number;
  /** Top of the title, and of the first row of spans. */
  readonly top: number;
  readonly spansTop: number;
  readonly lines: readonly LineRun[];
  readonly begin: Float64Array;
  readonly end: Float64Array;
  /** Time without the spans inside. */
  readonly own: Float64Array;
  readonly depth: Uint16Array;
  /** The span around, -1 for none. */
  readonly parent: Int32Array;
  readonly node: readonly number[];
}

export interface Placed {
  readonly step: StepAnswer;
  readonly lanes: readonly PlacedLane[];
  readonly height: number;
}

export function placed(step: StepAnswer): Placed {
  let top = 0;
  const lanes = step.lanes.map((lane) => {
    const made = placedLane(lane, step.nodes, top);
    const rows = made.depth.reduce((most, depth) => Math.max(most, depth + 1), 1);
    top = made.spansTop + rows * ROW + BETWEEN;
    return made;
  });
  return { step, lanes, height: top };
}

function placedLane(lane: LaneAnswer, nodes: readonly SpanNode[], top: number): PlacedLane {
  const count = lane.node.length;
  const [begin, end, own] = [0, 1, 2].map(() => new Float64Array(count));
  const depth = new Uint16Array(count);
  const parent = new Int32Array(count).fill(-1);
  const around: number[] = [];
  let at = 0;
  for (let span = 0; span < count; span += 1) {
    at += lane.begin_step[span];
    begin[span] = at;
    end[span] = at + lane.duration_ns[span];
    own[span] = lane.duration_ns[span];
    while (around.length && end[around[around.length - 1]] <= at) around.pop();
    depth[span] = around.length;
    if (around.length) {
      parent[span] = around[around.length - 1];
      own[parent[span]] = Math.max(own[parent[span]] - lane.duration_ns[span], 0);
    }
    around.push(span);
  }
  const lines = lane.is_device ? [] : lineRuns({ begin, end, depth, node: lane.node }, nodes);
  return {
    name: lane.name,
    isDevice: lane.is_device,
    knownFrom: lane.known_from_ns,
    top,
    spansTop: top + TITLE + (lines.length ? ROW : 0),
    lines,
    begin,
    end,
    own,
    depth,
    parent,
    node: lane.node,
  };
}

/** From the first to the last of consecutive outermost spans with one line. */
function lineRuns(
  spans: Pick<PlacedLane, "begin" | "end" | "depth" | "node">,
  nodes: readonly SpanNode[],
): LineRun[] {
  const runs: { begin: number; end: number; node: number }[] = [];
  let current = "";
  spans.node.forEach((node, span) => {
    if (spans.depth[span]) return;
    const { file, line } = nodes[node].place;
    const key = file && `${line} ${file}`;
    if (key && key === current) runs[runs.length - 1].end = spans.end[span];
    else if (key) runs.push({ begin: spans.begin[span], end: spans.end[span], node });
    current = key;
  });
  return runs;
}

/** The span at a moment and a height, -1 for none. */
export function spanAt(lane: PlacedLane, moment: number, y: number, slack: number): number {
  const depth = Math.floor((y - lane.spansTop) / ROW);
  if (depth < 0) return -1;
  let nearest = -1;
  // From the last that begins before: a span of this depth that ends before the moment ends the search.
  for (let span = firstAfter(lane.begin, moment + slack) - 1; span >= 0; span -= 1) {
    if (lane.depth[span] !== depth) continue;
    if (lane.end[span] >= moment - slack) nearest = span;
    break;
  }
  return nearest;
}

/** Number of the first value above `limit` in ascending values. */
export function firstAfter(values: Float64Array, limit: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

export type Move = "left" | "right" | "up" | "down";

/** The span beside, around or inside another one; the span itself where there is none. */
export function moved(lane: PlacedLane, span: number, move: Move): number {
  if (move === "up") return lane.parent[span] >= 0 ? lane.parent[span] : span;
  if (move === "down") return lane.parent[span + 1] === span ? span + 1 : span;
  const step = move === "right" ? 1 : -1;
  for (let next = span + step; next >= 0 && next < lane.node.length; next += step) {
    if (lane.depth[next] === lane.depth[span]) return next;
  }
  return span;
}

/** Moments at round distances, so that at most `most` lie from `from` to `to`. */
export function ticks(from: number, to: number, most: number): number[] {
  const least = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const distance =
    power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
  const found: number[] = [];
  for (let each = Math.ceil(from / distance); each * distance <= to; each += 1) {
    found.push(each * distance);
  }
  return found;
}
