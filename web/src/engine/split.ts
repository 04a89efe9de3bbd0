// Split a tree by labels: each label gets a copy of the paths that lead to nodes with that label.

import { OUTSIDE } from "./entries";
import type { Labels } from "./pivot";
import { Tree } from "./tree";

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

/** Labels are handled together, one a bit. */
const TOGETHER = 32;

/** Siblings keep their order. A label's own node is its copy of the root. */
export function splitBy(whole: Placed, { ofNode, functions }: Labels): Placed {
  const chargedTo = new Int32Array(whole.chargedTo.length).fill(OUTSIDE);
  const starts: number[] = [];
  let made: Copies = { above: NONE, func: NONE, first: NONE };
  for (let from = 0; from < functions.length; from += TOGETHER) {
    const own = functions.slice(from, from + TOGETHER);
    const wanted = wantedBy(whole, ofNode, from);
    const next = copiesOf(wanted);
    const size = made.above.length;
    let end = size;
    own.forEach((_, bit) => {
      starts.push(end);
      end += next[bit];
      next[bit] = end - next[bit];
    });
    made = {
      above: extended(made.above, end),
      func: extended(made.func, end),
      first: extended(made.first, end),
    };
    const rows = copy(whole, wanted, own, next, made, new Int32Array(end - size));
    charge(whole.chargedTo, ofNode, from, wanted, rows, chargedTo);
  }
  return { tree: Tree.fromParents(made.above, made.func), first: made.first, chargedTo, starts };
}

interface Copies {
  readonly above: Int32Array;
  readonly func: Int32Array;
  readonly first: Int32Array;
}

interface Rows {
  /** Where each node's copies begin in `ids`, in the order of their labels. */
  readonly row: Int32Array;
  readonly ids: Int32Array;
}

const NONE = new Int32Array(0);

function extended(column: Int32Array, length: number): Int32Array {
  const wide = new Int32Array(length);
  wide.set(column);
  return wide;
}

/** The labels that occur at or below each node, as bits. */
function wantedBy({ tree, chargedTo }: Placed, ofNode: Uint8Array | Int32Array, from: number) {
  const { parent } = tree;
  const wanted = new Int32Array(parent.length);
  for (let node = 0; node < chargedTo.length; node++) {
    const bit = ofNode[node] - from;
    if (chargedTo[node] !== OUTSIDE && bit >= 0 && bit < TOGETHER)
      wanted[chargedTo[node]] |= 1 << bit;
  }
  for (let node = parent.length - 1; node > 0; node--) wanted[parent[node]] |= wanted[node];
  if (from === 0) wanted[0] |= 1;
  return wanted;
}

function copiesOf(wanted: Int32Array): Int32Array {
  const copies = new Int32Array(TOGETHER);
  for (let node = 0; node < wanted.length; node++) {
    for (let bits = wanted[node]; bits; bits &= bits - 1) copies[31 - Math.clz32(bits & -bits)]++;
  }
  return copies;
}

/** Make the copies of all nodes; `next` is where the next copy of each label stands. */
function copy(
  { tree, first }: Placed,
  wanted: Int32Array,
  labels: readonly number[],
  next: Int32Array,
  made: Copies,
  ids: Int32Array,
): Rows {
  const { parent, frame } = tree;
  const { above, func } = made;
  const row = new Int32Array(wanted.length);
  let size = 0;
  for (let bits = wanted[0]; bits; bits &= bits - 1) {
    const bit = 31 - Math.clz32(bits & -bits);
    func[next[bit]] = labels[bit];
    ids[size++] = next[bit]++;
  }
  for (let node = 1; node < wanted.length; node++) {
    row[node] = size;
    const upper = wanted[parent[node]];
    const from = row[parent[node]];
    for (let bits = wanted[node]; bits; bits &= bits - 1) {
      const low = bits & -bits;
      const id = next[31 - Math.clz32(low)]++;
      above[id] = ids[from + bitsIn(upper & (low - 1))];
      func[id] = frame[node];
      made.first[id] = first[node];
      ids[size++] = id;
    }
  }
  return { row, ids };
}

/** Give each node's cost to the copy with the node's label. */
function charge(
  from: Int32Array,
  ofNode: Uint8Array | Int32Array,
  label: number,
  wanted: Int32Array,
  { row, ids }: Rows,
  to: Int32Array,
): void {
  for (let node = 0; node < from.length; node++) {
    const bit = ofNode[node] - label;
    const at = from[node];
    if (at === OUTSIDE || bit < 0 || bit >= TOGETHER) continue;
    to[node] = ids[row[at] + bitsIn(wanted[at] & ((1 << bit) - 1))];
  }
}

/** How many bits are set. Source: Hacker's Delight, figure 5-2. */
function bitsIn(bits: number): number {
  const twos = bits - ((bits >>> 1) & 0x55555555);
  const fours = (twos & 0x33333333) + ((twos >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
