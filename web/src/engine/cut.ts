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
  const end = tree.endOf(root);
  const { threshold, positive } = visible(inclusive.subarray(root, end), px);
  const kept = [root];
  for (let node = root + 1; node < end; node++) {
    if (inclusive[node] >= threshold) kept.push(node);
  }
  const above = tree.path(root).slice(0, -1);
  return {
    nodes: [...above, ...kept],
    above: above.length,
    leftOut: Math.max(positive - kept.length, 0),
    threshold,
  };
}

/** The smallest value shown, and how many values are positive; the first value is the whole. */
export function visible(
  values: ArrayLike<number>,
  px: number,
): { threshold: number; positive: number } {
  const least = Math.max(Math.ceil((values[0] * LEAST_PX) / px), 1);
  let [some, positive, wide] = [0, 0, 0];
  for (let node = 0; node < values.length; node++) {
    const value = values[node];
    if (value === 0) continue;
    some++;
    if (value > 0) positive++;
    if (value >= least) wide++;
  }
  if (some <= FEW_NODES) return { threshold: 1, positive };
  if (wide <= MOST_NODES) return { threshold: least, positive };
  const largest = new Float64Array(wide);
  for (let node = 0, at = 0; at < wide; node++) {
    if (values[node] >= least) largest[at++] = values[node];
  }
  return { threshold: ranked(largest, wide - MOST_NODES) + 1, positive };
}

/** The value that would stand at `rank` if the values were sorted; they change places. */
function ranked(values: Float64Array, rank: number): number {
  let [from, to] = [0, values.length - 1];
  while (from < to) {
    const middle = values[(from + to) >> 1];
    let [low, high] = [from, to];
    while (low <= high) {
      while (values[low] < middle) low++;
      while (values[high] > middle) high--;
      if (low > high) break;
      const value = values[low];
      values[low++] = values[high];
      values[high--] = value;
    }
    if (rank <= high) to = high;
    else if (rank >= low) from = low;
    else break;
  }
  return values[rank];
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
  }
  return [columns, used.map((func) => index.get(func) ?? 0)];
}

/** A frame of the last of the profiles that are compared, or none. */
export function idIn(last: TopDown): (side: Side) => number {
  return ({ view, func }) => (view === last ? view.functions.example[func] : NO_FRAME);
}
