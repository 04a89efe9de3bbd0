// Split a tree by phases: each phase is a label and gets a copy of the paths that lead to nodes with that label.

import { OUTSIDE } from "./entries";
import { type Numbers, Tree } from "./tree";

/** A tree, and where the nodes of the profile are in it. */
export interface Placed {
  readonly tree: Tree;
  /** Node of the profile that represents each node. */
  readonly first: Int32Array;
  /** Node that receives the cost of each node of the profile, or `OUTSIDE`. */
  readonly chargedTo: Int32Array;
  /** Where the copies of each label begin, ascending: the first is the root, which has no label. */
  readonly starts: readonly number[];
}

/** Bits of a byte: a label each. */
const BITS = 8;

/**
 * Siblings keep their order. A label's own node is its copy of the root. Changes `whole.chargedTo`.
 *
 * Takes the label of each node, from 1, and the function that represents each label; the first is the root's.
 */
export function splitBy(whole: Placed, ofNode: Numbers, functions: readonly number[]): Placed {
  const { chargedTo } = whole;
  const wanted = wantedBy(whole, ofNode);
  let end = 0;
  const next = wanted.copies.map((count) => {
    end += count;
    return end - count;
  });
  const starts = Array.from(next.subarray(0, functions.length));
  const above = new Int32Array(end);
  const func = new Int32Array(end);
  const first = new Int32Array(end);
  functions.forEach((each, label) => {
    if (wanted.copies[label]) func[starts[label]] = each;
  });
  copy(whole, wanted, ofNode, next, { above, func, first });
  return { tree: Tree.fromParents(above, func), first, chargedTo, starts };
}

interface Copies {
  readonly above: Int32Array;
  readonly func: Int32Array;
  readonly first: Int32Array;
}

interface Wanted {
  /** The labels that occur at or below each node, as bits. */
  readonly labels: Uint8Array;
  /** How many copies each label needs. */
  readonly copies: Int32Array;
  /** Nodes of the profile, counted from 1: the first that is charged to each node, and after each the next. */
  readonly charged: Int32Array;
  readonly following: Int32Array;
}

function wantedBy({ tree, chargedTo }: Placed, ofNode: Numbers): Wanted {
  const { parent } = tree;
  const labels = new Uint8Array(parent.length);
  const charged = new Int32Array(parent.length);
  const following = new Int32Array(chargedTo.length);
  for (let node = 0; node < chargedTo.length; node++) {
    const to = chargedTo[node];
    if (to === OUTSIDE) continue;
    labels[to] |= 1 << ofNode[node];
    following[node] = charged[to];
    charged[to] = node + 1;
  }
  labels[0] |= 1;
  // How often each byte occurs, because a loop over the bits of all nodes takes longer.
  const bytes = new Int32Array(1 << BITS);
  for (let node = parent.length - 1; node >= 0; node--) {
    if (node > 0) labels[parent[node]] |= labels[node];
    bytes[labels[node]]++;
  }
  const copies = new Int32Array(BITS);
  bytes.forEach((count, at) => {
    for (let bit = 0; bit < BITS; bit++) if (at & (1 << bit)) copies[bit] += count;
  });
  return { labels, copies, charged, following };
}

/** Make the copies of all nodes, and charge them; `next` is where the next copy of each label stands. */
function copy(
  { tree, first, chargedTo }: Placed,
  { labels, charged, following }: Wanted,
  ofNode: Numbers,
  next: Int32Array,
  made: Copies,
): void {
  const { parent, frame } = tree;
  const { above, func } = made;
  // The nodes from the root down to this one, and the last copies of each.
  const path: number[] = [];
  const last: number[] = [];
  let depth = -1;
  for (let node = 0; node < labels.length; node++) {
    while (depth >= 0 && path[depth] !== parent[node]) depth--;
    path[++depth] = node;
    const row = BITS * depth;
    for (let bits = labels[node]; bits; bits &= bits - 1) {
      const bit = 31 - Math.clz32(bits & -bits);
      const id = next[bit]++;
      last[row + bit] = id;
      if (node > 0) {
        above[id] = last[row - BITS + bit];
        func[id] = frame[node];
        made.first[id] = first[node];
      }
    }
    for (let each = charged[node]; each; each = following[each - 1]) {
      chargedTo[each - 1] = last[row + ofNode[each - 1]];
    }
  }
}
