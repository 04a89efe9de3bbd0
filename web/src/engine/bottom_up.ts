// Callers: the tree turned round, only down to a threshold.

import { visible } from "./cut";
import type { Numbers, Tree } from "./tree";

const NONE = -1;

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

export function bottomUp(view: Climbed, exclusive: Numbers, threshold: number, px: number) {
  const { tree } = view;
  const start: number[] = [];
  for (let node = 1; node < tree.length; node++) if (exclusive[node] > 0) start.push(node);
  return callers(view, start, exclusive, threshold, px);
}

/** The callers of a function by its inclusive cost; recursion counts once. */
export function callersOf(
  view: Climbed,
  func: number,
  inclusive: Numbers,
  threshold: number,
  px: number,
) {
  return callers(view, view.tree.outermost(func), inclusive, threshold, px);
}

/** A tree, and how many functions its nodes are of. */
interface Climbed {
  readonly tree: Tree;
  readonly functions: { readonly length: number };
}

/** Chains of callers: each extends one that stands before it by a function, and has a node as an example. */
class Chains {
  readonly parent: number[] = [];
  readonly func: number[] = [];
  readonly example: number[] = [];
  readonly value: number[] = [];

  add(parent: number, func: number, example: number, value: number): number {
    this.parent.push(parent);
    this.func.push(func);
    this.example.push(example);
    return this.value.push(value) - 1;
  }
}

function callers(
  { tree, functions }: Climbed,
  start: readonly number[],
  cost: Numbers,
  threshold: number,
  px: number,
): CallerTree {
  const least = Math.max(threshold, 1);
  const chains = new Chains();
  // Each node that costs climbs towards the root: where it is, and the next one of its chain.
  const at = new Int32Array(start);
  const value = new Float64Array(start.length);
  const next = new Int32Array(start.length);
  let sum = 0;
  for (let index = 0; index < start.length; index++) {
    value[index] = cost[start[index]];
    sum += value[index];
    next[index] = index + 1 < start.length ? index + 1 : NONE;
  }
  const whole = chains.add(NONE, 0, 0, sum);
  // The longer chains by the function added: the chain that had it last, and a number in order.
  const owner = new Int32Array(functions.length).fill(NONE);
  const place = new Int32Array(functions.length);
  const first = new Int32Array(functions.length);
  const last = new Int32Array(functions.length);
  const total = new Float64Array(functions.length);
  // Chains, each behind the first that climbs along it.
  const waiting = start.length ? [0, whole] : [];
  let leftOut = 0;
  while (waiting.length) {
    const chain = waiting.pop() ?? whole;
    const head = waiting.pop() ?? 0;
    let count = 0;
    for (let index = head, following = head; index !== NONE; index = following) {
      following = next[index];
      const node = chain === whole ? at[index] : tree.parent[at[index]];
      if (chain !== whole && node <= 0) continue;
      at[index] = node;
      const func = tree.frame[node];
      if (owner[func] === chain) {
        const known = place[func];
        next[last[known]] = index;
        last[known] = index;
        total[known] += value[index];
      } else {
        owner[func] = chain;
        place[func] = count;
        first[count] = index;
        last[count] = index;
        total[count++] = value[index];
      }
    }
    for (let known = 0; known < count; known++) {
      next[last[known]] = NONE;
      if (total[known] < least) {
        leftOut++;
        continue;
      }
      const node = at[first[known]];
      waiting.push(first[known], chains.add(chain, tree.frame[node], node, total[known]));
    }
  }
  return { ...shown(chains, px), leftOut };
}

/** The visible chains in pre-order, the largest child first: another order has no meaning here. */
function shown(chains: Chains, px: number) {
  const { parent, func, example, value } = chains;
  const count = value.length;
  const rest = [...value];
  const { threshold } = visible(value, px);
  const children = new Map<number, number[]>();
  for (let chain = 1; chain < count; chain++) {
    const above = parent[chain];
    rest[above] -= value[chain];
    if (value[chain] < threshold) continue;
    const known = children.get(above);
    if (known) known.push(chain);
    else children.set(above, [chain]);
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
