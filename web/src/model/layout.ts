// A flame graph as flat columns in depth-first pre-order: drawing and searching walk them without
// making an object. Positions are parts of the whole width, 0 to 1.

import type { FlameAnswer, FunctionColumns, NodeColumns } from "../engine/answers";

/** Parts of the whole below this are rounding errors of floating point sums. */
const REST_PART = 1e-9;

export type Order = "program" | "size";

/** What is drawn; all columns have one entry a node, `functions` one a function. */
export interface Layout {
  readonly count: number;
  readonly depth: Uint16Array;
  readonly left: Float64Array;
  readonly width: Float64Array;
  readonly end: Int32Array;
  readonly parent: Int32Array;
  readonly value: Float64Array;
  readonly exclusive: Float64Array;
  /** Where what is below a node but not shown begins, and how wide it is. */
  readonly restLeft: Float64Array;
  readonly restWidth: Float64Array;
  readonly source: Float64Array;
  readonly func: Int32Array;
  readonly phase: readonly string[];
  readonly calls: Pick<NodeColumns, "calls" | "mean" | "deviation" | "minimum" | "maximum"> | null;
  readonly spread: Pick<NodeColumns, "mean_of_ranks" | "most" | "most_rank"> | null;
  /** In a comparison the values of each node, one a profile, the base's first. */
  readonly sides: readonly (readonly (number | null)[])[] | null;
  readonly functions: FunctionColumns;
  readonly unit: string;
  readonly total: number;
  readonly totals: readonly number[];
  readonly leftOut: number;
  readonly threshold: number;
  readonly deepest: number;
  readonly most: number;
}

/** Lay out an answer; with the order "size" the largest child comes first. */
export function layOut(answer: FlameAnswer, order: Order): Layout {
  const columns = order === "size" ? sorted(answer) : answer;
  const nodes = columns.nodes;
  const count = nodes.depth.length;
  const depth = Uint16Array.from(nodes.depth);
  const value = Float64Array.from(nodes.value);
  const { parent, end } = relatives(depth);
  const left = new Float64Array(count);
  const width = new Float64Array(count);
  const whole = value[0] || 1;
  const next = new Float64Array(count);
  for (let node = 0; node < count; node += 1) {
    const above = parent[node];
    const start = above < 0 ? 0 : next[above];
    left[node] = start;
    width[node] = value[node] / whole;
    next[node] = start;
    if (above >= 0) next[above] = start + width[node];
  }
  const exclusive = Float64Array.from(nodes.exclusive);
  // What a node costs without itself and the children that are shown: children too narrow to show.
  const restWidth = new Float64Array(count);
  for (let node = 0; node < count; node += 1) {
    const below = (next[node] - left[node]) * whole;
    const rest = value[node] - exclusive[node] - below;
    restWidth[node] = rest > REST_PART * whole ? rest / whole : 0;
  }
  return {
    count,
    depth,
    left,
    width,
    end,
    parent,
    value,
    exclusive,
    restLeft: next,
    restWidth,
    source: Float64Array.from(nodes.source),
    func: Int32Array.from(nodes.function),
    phase: nodes.phase,
    calls: nodes.calls.length ? nodes : null,
    spread: nodes.most.length ? nodes : null,
    sides: nodes.sides.length ? nodes.sides : null,
    functions: answer.functions,
    unit: answer.unit,
    total: answer.total,
    totals: answer.totals,
    leftOut: answer.left_out,
    threshold: answer.threshold,
    deepest: depth.reduce((most, each) => Math.max(most, each), 0),
    most: exclusive.reduce((most, each) => Math.max(most, each), 0),
  };
}

/**
 * Replace what is known below a node by a finer answer for that node.
 *
 * The finer answer begins with the node's ancestors, which are dropped.
 */
export function graft(coarse: FlameAnswer, fine: FlameAnswer): FlameAnswer {
  const root = fine.above;
  const source = fine.nodes.source[root];
  const depth = fine.nodes.depth[root];
  const place = coarse.nodes.source.findIndex(
    (each, node) => each === source && coarse.nodes.depth[node] === depth,
  );
  if (place < 0) return coarse;
  let end = place + 1;
  while (end < coarse.nodes.depth.length && coarse.nodes.depth[end] > depth) end += 1;
  const { functions, places } = joined(coarse.functions, fine.functions);
  const nodes = { ...coarse.nodes };
  for (const name of Object.keys(nodes) as (keyof typeof nodes)[]) {
    const added =
      name === "function" ? fine.nodes.function.map((each) => places[each]) : fine.nodes[name];
    const column = nodes[name] as unknown[];
    if (column.length === 0) continue;
    (nodes[name] as unknown[]) = [
      ...column.slice(0, place),
      ...added.slice(root),
      ...column.slice(end),
    ];
  }
  return { ...coarse, nodes, functions };
}

function joined(first: FunctionColumns, second: FunctionColumns) {
  const key = (columns: FunctionColumns, index: number) =>
    `${columns.id[index]}|${columns.kind[index]}|${columns.name[index]}`;
  const functions: FunctionColumns = {
    id: [...first.id],
    name: [...first.name],
    kind: [...first.kind],
    layer: [...first.layer],
    file: [...first.file],
    line: [...first.line],
  };
  const known = new Map(first.id.map((_, index) => [key(first, index), index]));
  const places = second.id.map((_, index) => {
    const place = known.get(key(second, index));
    if (place !== undefined) return place;
    for (const name of Object.keys(functions) as (keyof FunctionColumns)[]) {
      (functions[name] as unknown[]).push(second[name][index]);
    }
    return functions.id.length - 1;
  });
  return { functions, places };
}

function relatives(depth: Uint16Array) {
  const count = depth.length;
  const parent = new Int32Array(count).fill(-1);
  const end = new Int32Array(count).fill(count);
  const open: number[] = [];
  for (let node = 0; node < count; node += 1) {
    while (open.length > depth[node]) end[open.pop() ?? 0] = node;
    parent[node] = open.length ? open[open.length - 1] : -1;
    open.push(node);
  }
  return { parent, end };
}

/** Return what is known of the calls of a node, null where none were timed. */
export function callsAt({ calls }: Layout, node: number) {
  if (!calls || calls.calls[node] <= 0) return null;
  const known = (value: number | undefined) => (value === undefined || value < 0 ? null : value);
  return {
    count: calls.calls[node],
    mean: calls.mean[node],
    deviation: known(calls.deviation[node]),
    minimum: known(calls.minimum[node]),
    maximum: known(calls.maximum[node]),
  };
}

/** Return the answer with the children of every node in descending order of value. */
function sorted(answer: FlameAnswer): FlameAnswer {
  const { parent } = relatives(Uint16Array.from(answer.nodes.depth));
  const children: number[][] = answer.nodes.depth.map(() => []);
  for (let node = 1; node < parent.length; node += 1) children[parent[node]].push(node);
  const order: number[] = [];
  const open = [0];
  while (open.length && parent.length) {
    const node = open.pop() ?? 0;
    order.push(node);
    const below = children[node].sort((a, b) => answer.nodes.value[a] - answer.nodes.value[b]);
    open.push(...below);
  }
  const nodes = { ...answer.nodes };
  for (const name of Object.keys(nodes) as (keyof typeof nodes)[]) {
    const column = nodes[name] as unknown[];
    if (column.length) (nodes[name] as unknown[]) = order.map((node) => column[node]);
  }
  return { ...answer, nodes };
}

/** Return the node at a place of a level, or -1. */
export function nodeAt(layout: Layout, level: number, x: number): number {
  let node = 0;
  while (node >= 0 && node < layout.count) {
    if (x < layout.left[node] || x >= layout.left[node] + layout.width[node]) {
      const above = layout.parent[node];
      node = layout.end[node];
      if (above < 0 || node >= layout.end[above]) return -1;
      continue;
    }
    if (layout.depth[node] === level) return node;
    if (layout.end[node] === node + 1) return -1;
    node += 1;
  }
  return -1;
}

/** Return the deepest node that spans a part of the width. */
export function spanning(layout: Layout, from: number, to: number): number {
  let best = 0;
  const slack = 1e-9;
  for (let node = 0; node < layout.count; ) {
    const right = layout.left[node] + layout.width[node];
    if (layout.left[node] <= from + slack && right >= to - slack) {
      best = node;
      node += 1;
    } else {
      node = layout.end[node];
    }
    if (node >= layout.end[best]) break;
  }
  return best;
}

/** Return the nodes from the root down to one, both included. */
export function pathTo(layout: Layout, node: number): number[] {
  const path: number[] = [];
  for (let each = node; each >= 0; each = layout.parent[each]) path.push(each);
  return path.reverse();
}

/** Return what a node costs in the first two of the profiles that are compared. */
export function pairOf(layout: Layout, node: number): [number, number] {
  const [before, after] = layout.sides?.[node] ?? [];
  return [before ?? 0, after ?? 0];
}

/** Return the node that stands for a node of the profile, or -1. */
export function nodeOfSource(layout: Layout, source: number): number {
  return layout.source.indexOf(source);
}
