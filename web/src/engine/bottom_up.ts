// Callers: the tree turned round, level by level and only down to a threshold.

import { Pairs } from "./pairs";
import { type Numbers, Tree } from "./tree";

export interface CallerTree {
  /** `tree.frame` is the function, meaningless for the root. */
  readonly tree: Tree;
  readonly value: Float64Array;
  /** A node of the caller in the original tree; 0 for the root. */
  readonly example: Int32Array;
  /** Number of chains below the threshold. */
  readonly leftOut: number;
}

export function bottomUp(tree: Tree, exclusive: Numbers, threshold: number): CallerTree {
  const start: number[] = [];
  for (let node = 1; node < tree.length; node++) if (exclusive[node] > 0) start.push(node);
  return callers(tree, start, exclusive, threshold);
}

/** The callers of a function by its inclusive cost; recursion counts once. */
export function callersOf(
  tree: Tree,
  func: number,
  inclusive: Numbers,
  threshold: number,
): CallerTree {
  return callers(tree, tree.outermost(func), inclusive, threshold);
}

function callers(tree: Tree, start: number[], cost: Numbers, threshold: number): CallerTree {
  const made = { parent: [0], func: [0], value: [0], example: [0] };
  let level = {
    at: start,
    group: start.map(() => 0),
    value: start.map((node) => cost[node]),
  };
  for (const value of level.value) made.value[0] += value;
  let leftOut = 0;
  while (level.at.length) {
    const pairs = new Pairs(level.at.length);
    const totals: number[] = [];
    const firsts: number[] = [];
    const numbers = level.at.map((node, index) => {
      const number = pairs.number(level.group[index], tree.frame[node]);
      if (number === totals.length) {
        totals.push(0);
        firsts.push(index);
      }
      totals[number] += level.value[index];
      return number;
    });
    const kept = totals
      .map((_, number) => number)
      .filter((number) => {
        return totals[number] >= Math.max(threshold, 1);
      });
    leftOut += totals.length - kept.length;
    // Largest first, because the order of appearance has no meaning in an inverted tree.
    kept.sort(
      (a, b) =>
        totals[b] - totals[a] ||
        pairs.first[a] - pairs.first[b] ||
        pairs.second[a] - pairs.second[b],
    );
    const named = new Int32Array(totals.length).fill(-1);
    for (const number of kept) {
      const first = firsts[number];
      named[number] = made.parent.length;
      made.parent.push(level.group[first]);
      made.func.push(tree.frame[level.at[first]]);
      made.value.push(totals[number]);
      made.example.push(level.at[first]);
    }
    const next: typeof level = { at: [], group: [], value: [] };
    level.at.forEach((node, index) => {
      const group = named[numbers[index]];
      const above = tree.parent[node];
      if (group < 0 || above <= 0) return;
      next.at.push(above);
      next.group.push(group);
      next.value.push(level.value[index]);
    });
    level = next;
  }
  const { tree: inverted, order } = Tree.fromParents(
    Int32Array.from(made.parent),
    Int32Array.from(made.func),
  );
  return {
    tree: inverted,
    value: Float64Array.from(order, (node) => made.value[node]),
    example: order.map((node) => made.example[node]),
    leftOut,
  };
}
