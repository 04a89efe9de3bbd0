// Answers with a tree: top-down, bottom-up, callers and callees of a function, difference.

import type { Query } from "../model/question";
import type { FlameAnswer, NodeColumns } from "./answers";
import { bottomUp, type CallerTree, callersOf } from "./bottom_up";
import { type Cut, cut, functionColumns, idIn } from "./cut";
import type { Difference } from "./difference";
import { OUTSIDE } from "./entries";
import { type Edit, pixels, refuse, wholeNumber } from "./options";
import { NOT_RECORDED, rounded } from "./rounding";
import type { Spreads } from "./spreads";
import type { TopDown } from "./top_down";
import type { Numbers } from "./tree";

// A page cannot zoom into an inverted tree, so these trees are cut in finer detail.
const FINER = 4;
const NOT_GIVEN = -1;

/** What a question about trees needs; `focused` makes the same tree with one more edit. */
export interface Trees {
  view(): TopDown;
  focused(edit: Edit): TopDown;
  difference(): Difference;
  values(view: TopDown): Numbers;
  unit(view: TopDown): string;
}

export function flame(trees: Trees, query: Query): FlameAnswer {
  const kind = query.kind || "top_down";
  const func = wholeNumber(query, "function", NOT_GIVEN);
  if ((kind === "callers" || kind === "callees") && func === NOT_GIVEN) {
    refuse(`the view '${kind}' needs the number of a frame as 'function'`);
  }
  const px = pixels(query) * (kind === "top_down" || kind === "callees" ? 1 : FINER);
  switch (kind) {
    case "top_down": {
      const root = wholeNumber(query, "root", NOT_GIVEN);
      const view = trees.view();
      return forwards(trees, view, root === NOT_GIVEN ? 0 : view.nodeOf(root), px);
    }
    case "bottom_up": {
      const view = trees.view();
      const exclusive = view.exclusive(trees.values(view));
      const threshold = fineThreshold(sum(exclusive), px);
      const inverted = bottomUp(view, exclusive, threshold, px);
      return backwards(trees, view, inverted, threshold);
    }
    case "callers": {
      const view = trees.view();
      const inclusive = view.tree.inclusive(view.exclusive(trees.values(view)));
      const wanted = functionOf(view, func);
      let whole = 0;
      for (const node of view.tree.outermost(wanted)) whole += inclusive[node];
      const threshold = fineThreshold(whole, px);
      const inverted = callersOf(view, wanted, inclusive, threshold, px);
      return backwards(trees, view, inverted, threshold);
    }
    case "callees": {
      functionOf(trees.view(), func);
      const view = trees.focused({ kind: "focus", target: func });
      return forwards(trees, view, 0, px);
    }
    case "difference":
      return difference(trees, query.normalize === "1", px);
  }
  return refuse(`no view '${kind}'`);
}

function forwards(trees: Trees, view: TopDown, root: number, px: number): FlameAnswer {
  const exclusive = view.exclusive(trees.values(view));
  const inclusive = view.tree.inclusive(exclusive);
  const part = cut(view.tree, inclusive, root, px);
  const [functions, func] = functionColumns(
    (number) => ({ view, func: number }),
    picked(view.tree.frame, part.nodes),
  );
  const nodes: NodeColumns = {
    ...EMPTY_COLUMNS,
    depth: part.nodes.map((node) => view.tree.depth(node)),
    function: func,
    value: picked(inclusive, part.nodes),
    exclusive: picked(exclusive, part.nodes),
    ...sourceColumns(view, part.nodes),
    ...callColumns(view.calls(part.nodes)),
  };
  const total = inclusive[0];
  return answerOf(trees, view, part, nodes, { functions, total });
}

function backwards(
  trees: Trees,
  view: TopDown,
  inverted: CallerTree,
  threshold: number,
): FlameAnswer {
  const { depth, value, rest, example } = inverted;
  const [functions, func] = functionColumns((number) => ({ view, func: number }), inverted.func);
  // Only a chain that ends at a thread has no further caller; elsewhere callers are left out.
  const exclusive = rest.map((own, at) =>
    view.tree.parent[example[at]] === 0 && example[at] > 0 ? own : 0,
  );
  const nodes: NodeColumns = {
    ...EMPTY_COLUMNS,
    depth,
    function: func,
    value,
    exclusive,
    ...sourceColumns(view, example),
  };
  const { count, leftOut } = inverted;
  return answerOf(trees, view, { above: 0, threshold: 0, leftOut: 0 }, nodes, {
    functions,
    total: value[0],
    left_out: count - depth.length + leftOut,
    threshold: Math.max(inverted.threshold, leftOut ? threshold : 0),
  });
}

function difference(trees: Trees, normalize: boolean, px: number): FlameAnswer {
  const all = trees.difference();
  const { tree, views } = all;
  const last = views[views.length - 1];
  const recorded = all.exclusive(trees.values);
  const totals = recorded.map(sum);
  const costs = recorded.map((column, side) => {
    if (!normalize || !side || !totals[side]) return column;
    // Each row is rounded separately, so the sum is off by less than one unit for each node.
    const scale = totals[0] / totals[side];
    return column.map((value) => rounded(value * scale));
  });
  // The largest side of each node, so that removed and new nodes stay visible and widths add up.
  const largest = costs.reduce((most, column) =>
    most.map((value, node) => Math.max(value, column[node])),
  );
  const width = tree.inclusive(largest);
  const part = cut(tree, width, 0, px);
  const ofSide = all.nodes();
  const inclusive = costs.map((column) => tree.inclusive(column));
  const [functions, func] = functionColumns(
    (number) => all.functions[number],
    picked(tree.frame, part.nodes),
    idIn(last),
  );
  /** The last profile that has a node. */
  const sideOf = (node: number) =>
    ofSide.reduce((last, column, side) => (column[node] === OUTSIDE ? last : side), 0);
  const own = part.nodes.map((node) => [views[sideOf(node)], ofSide[sideOf(node)][node]] as const);
  const nodes: NodeColumns = {
    ...EMPTY_COLUMNS,
    depth: part.nodes.map((node) => tree.depth(node)),
    function: func,
    value: picked(width, part.nodes),
    exclusive: picked(largest, part.nodes),
    source: own.map(([view, node]) => view.source(node)),
    phase: own.map(([view, node]) => phaseLabel(view, node)),
    sides: part.nodes.map((node) =>
      inclusive.map((column, side) => (ofSide[side][node] === OUTSIDE ? null : column[node])),
    ),
  };
  return answerOf(trees, last, part, nodes, {
    functions,
    total: width[0],
    totals,
  });
}

const EMPTY_COLUMNS = {
  calls: [],
  mean: [],
  deviation: [],
  minimum: [],
  maximum: [],
  sides: [],
  mean_of_ranks: [],
  most: [],
  most_rank: [],
};

function answerOf(
  trees: Trees,
  view: TopDown,
  part: Omit<Cut, "nodes">,
  nodes: NodeColumns,
  rest: Pick<FlameAnswer, "functions" | "total"> & Partial<FlameAnswer>,
): FlameAnswer {
  return {
    unit: trees.unit(view),
    above: part.above,
    left_out: part.leftOut,
    threshold: part.threshold,
    nodes,
    totals: [],
    ...rest,
  };
}

/** The function that a frame belongs to; its layer must be shown. */
export function functionOf(view: TopDown, frame: number): number {
  const frames = view.functions.ofFrame.length;
  if (frame >= frames) {
    refuse(`no frame ${frame}: this profile has the frames 0 to ${frames - 1}`);
  }
  const func = view.functions.ofFrame[frame];
  if (!view.tree.frame.includes(func)) {
    const { name } = view.functions.shown(func);
    refuse(`'${name}' is hidden in the tree; show its layer, or undo the edit`);
  }
  return func;
}

function callColumns(spreads: Spreads | null): Partial<NodeColumns> {
  if (!spreads) return {};
  const { total, minimum, maximum } = spreads;
  const calls = [...spreads.count];
  const extreme = (column: Float64Array | null) =>
    column ? calls.map((count, at) => (count > 0 ? column[at] : NOT_RECORDED)) : [];
  return {
    calls,
    mean: calls.map((count, at) => (count > 0 ? rounded(total[at] / count) : NOT_RECORDED)),
    deviation: calls.map((_, at) => rounded(spreads.deviation(at) ?? NOT_RECORDED)),
    minimum: extreme(minimum),
    maximum: extreme(maximum),
  };
}

function fineThreshold(whole: number, px: number): number {
  return Math.max(Math.floor(whole / (2 * px)), 1);
}

function sourceColumns(view: TopDown, nodes: readonly number[]) {
  return {
    source: nodes.map((node) => view.source(node)),
    phase: nodes.map((node) => phaseLabel(view, node)),
  };
}

/** The phase that a tree is split by, or that of the first node that is represented. */
function phaseLabel(view: TopDown, node: number): string {
  const { facts, phase } = view.profile;
  const label = view.options.pivot === "phase" ? view.labelOf(node) : 0;
  return facts.phases[label ? label - 1 : phase[view.first[node]]];
}

function picked(column: ArrayLike<number>, nodes: number[]): number[] {
  return nodes.map((node) => column[node]);
}

function sum(values: Numbers): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
