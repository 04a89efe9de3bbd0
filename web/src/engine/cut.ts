// Reduce a tree to its visible part, and return it as columns.

import type { FunctionColumns } from "./answers";
import type { Side } from "./difference";
import { NO_FRAME } from "./functions";
import type { TopDown } from "./top_down";
import type { Tree } from "./tree";

const LEAST_PX = 0.5;
const MOST_NODES = 6_000;
// Trees with at most this many nodes are drawn whole, so that zooming needs no further cut.
const FEW_NODES = 1_500;

export interface Cut {
  /** Nodes kept, ascending, the ancestors of the zoomed node first. */
  readonly nodes: number[];
  readonly above: number;
  readonly leftOut: number;
  readonly threshold: number;
}

/** Keep the nodes at and below `root` that are at least half a pixel wide. */
export function cut(tree: Tree, inclusive: Float64Array, root: number, px: number): Cut {
  const end = tree.end[root];
  let threshold = Math.max(Math.ceil((inclusive[root] * LEAST_PX) / px), 1);
  let some = 0;
  let visible = 0;
  for (let node = root; node < end; node++) {
    if (inclusive[node] !== 0) some++;
    if (inclusive[node] >= threshold) visible++;
  }
  if (some <= FEW_NODES) threshold = 1;
  else if (visible > MOST_NODES) threshold = nthLargest(inclusive, root, end, threshold) + 1;
  const kept: number[] = [];
  let positive = 0;
  for (let node = root; node < end; node++) {
    if (inclusive[node] > 0) positive++;
    if (inclusive[node] >= threshold) kept.push(node);
  }
  if (kept[0] !== root) kept.unshift(root);
  const above = tree.path(root).slice(0, -1);
  return {
    nodes: [...above, ...kept],
    above: above.length,
    leftOut: Math.max(positive - kept.length, 0),
    threshold,
  };
}

function nthLargest(values: Float64Array, from: number, to: number, least: number): number {
  const sorted = values
    .subarray(from, to)
    .filter((value) => value >= least)
    .sort();
  return sorted[sorted.length - MOST_NODES];
}

/** The functions of some nodes, each once, and the index of each node's function among them. */
export function functionColumns(
  sides: (func: number) => Side,
  used: readonly number[],
  idOf: (side: Side) => number = ({ view, func }) => view.functions.example[func],
): [FunctionColumns, number[]] {
  const distinct = [...new Set(used)].sort((a, b) => a - b);
  const index = new Map(distinct.map((func, at) => [func, at]));
  const columns: FunctionColumns = {
    id: [],
    name: [],
    kind: [],
    layer: [],
    file: [],
    line: [],
    library: [],
  };
  for (const number of distinct) {
    const side = sides(number);
    const { functions } = side.view;
    const shown = functions.shown(side.func);
    columns.id.push(idOf(side));
    columns.name.push(shown.name);
    columns.kind.push(shown.kind);
    columns.layer.push(functions.layerName(side.func));
    columns.file.push(shown.file);
    columns.line.push(shown.line);
    columns.library.push(functions.library[side.func] === 1);
  }
  return [columns, used.map((func) => index.get(func) ?? 0)];
}

/** A frame of the second profile, or none. */
export function idAfter(after: TopDown): (side: Side) => number {
  return ({ view, func }) => (view === after ? view.functions.example[func] : NO_FRAME);
}
