// Callers: the tree turned round, level by level and only down to a threshold.

import { visible } from "./cut";
import { doubled } from "./doubled";
import { Pairs } from "./pairs";
import { NO_NODE, type Numbers, type Tree } from "./tree";

/** The visible part of a tree turned round, in pre-order; the numbers of all chains beside it. */
export interface CallerTree {
  readonly depth: number[];
  /** Function of each node, meaningless for the root. */
  readonly func: number[];
  readonly value: number[];
  /** The part of each node that has no caller in the tree. */
  readonly rest: number[];
  /** A node of the caller in the original tree; 0 for the root. */
  readonly example: number[];
  readonly threshold: number;
  /** Number of chains: in the tree, and left out because they are narrow. */
  readonly count: number;
  readonly leftOut: number;
}

export function bottomUp(tree: Tree, exclusive: Numbers, threshold: number, px: number) {
  const start: number[] = [];
  for (let node = 1; node < tree.length; node++) if (exclusive[node] > 0) start.push(node);
  return callers(tree, start, exclusive, threshold, px);
}

/** The callers of a function by its inclusive cost; recursion counts once. */
export function callersOf(
  tree: Tree,
  func: number,
  inclusive: Numbers,
  threshold: number,
  px: number,
) {
  return callers(tree, tree.outermost(func), inclusive, threshold, px);
}

/** Chains of callers in the order in which they are met: level by level. */
class Chains {
  parent = new Int32Array(1024);
  func = new Int32Array(1024);
  example = new Int32Array(1024);
  value = new Float64Array(1024);
  count = 0;

  add(parent: number, func: number, example: number, value: number): number {
    if (this.count === this.parent.length) {
      this.parent = doubled(this.parent);
      this.func = doubled(this.func);
      this.example = doubled(this.example);
      this.value = doubled(this.value);
    }
    this.parent[this.count] = parent;
    this.func[this.count] = func;
    this.example[this.count] = example;
    this.value[this.count] = value;
    return this.count++;
  }
}

function callers(
  tree: Tree,
  start: readonly number[],
  cost: Numbers,
  threshold: number,
  px: number,
): CallerTree {
  const least = Math.max(threshold, 1);
  const chains = new Chains();
  chains.add(NO_NODE, 0, 0, 0);
  // Each node that costs climbs towards the root: where it is, and the chain that led there.
  const at = Int32Array.from(start);
  const chain = new Int32Array(start.length);
  const value = Float64Array.from(start, (node) => cost[node]);
  for (let index = 0; index < value.length; index++) chains.value[0] += value[index];
  let leftOut = 0;
  for (let size = at.length; size > 0; ) {
    const pairs = new Pairs(size);
    const totals = new Float64Array(size);
    const firsts = new Int32Array(size);
    const number = new Int32Array(size);
    for (let index = 0; index < size; index++) {
      const before = pairs.count;
      const found = pairs.number(chain[index], tree.frame[at[index]]);
      if (pairs.count > before) firsts[found] = at[index];
      totals[found] += value[index];
      number[index] = found;
    }
    const named = new Int32Array(pairs.count).fill(NO_NODE);
    for (let found = 0; found < named.length; found++) {
      if (totals[found] < least) leftOut++;
      else {
        const { first, second } = pairs;
        named[found] = chains.add(first[found], second[found], firsts[found], totals[found]);
      }
    }
    let left = 0;
    for (let index = 0; index < size; index++) {
      const above = tree.parent[at[index]];
      if (named[number[index]] === NO_NODE || above <= 0) continue;
      at[left] = above;
      chain[left] = named[number[index]];
      value[left++] = value[index];
    }
    size = left;
  }
  return { ...shown(chains, px), leftOut };
}

/** The visible chains in pre-order, the largest child first: another order has no meaning here. */
function shown({ parent, func, example, value, count }: Chains, px: number) {
  const rest = value.slice(0, count);
  const { threshold } = visible(value.subarray(0, count), px);
  const children = new Map<number, number[]>();
  for (let chain = 1; chain < count; chain++) {
    rest[parent[chain]] -= value[chain];
    if (value[chain] < threshold) continue;
    const known = children.get(parent[chain]);
    if (known) known.push(chain);
    else children.set(parent[chain], [chain]);
  }
  const part = {
    depth: [] as number[],
    func: [] as number[],
    value: [] as number[],
    rest: [] as number[],
    example: [] as number[],
  };
  const walk = (chain: number, depth: number) => {
    part.depth.push(depth);
    part.func.push(func[chain]);
    part.value.push(value[chain]);
    part.rest.push(rest[chain]);
    part.example.push(example[chain]);
    const below = children.get(chain) ?? [];
    below.sort((a, b) => value[b] - value[a] || func[a] - func[b]);
    for (const each of below) walk(each, depth + 1);
  };
  walk(0, 0);
  return { ...part, threshold, count };
}
