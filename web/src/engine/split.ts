// Split a tree by labels: each label gets a copy of the paths that lead to nodes with that label.

import { doubled } from "./doubled";
import { OUTSIDE } from "./entries";
import type { Labels } from "./pivot";
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

/** Labels are handled together, one a bit. */
const TOGETHER = 32;

/** Siblings keep their order. A label's own node is its copy of the root. Changes `whole.chargedTo`. */
export function splitBy(whole: Placed, { ofNode, from: first, functions }: Labels): Placed {
  const { chargedTo } = whole;
  const starts: number[] = [];
  let made: Copies = { above: NONE, func: NONE, first: NONE };
  for (let from = 0; from < functions.length; from += TOGETHER) {
    const own = functions.slice(from, from + TOGETHER);
    const wanted = wantedBy(whole, ofNode, from - first);
    let end = made.above.length;
    const next = wanted.copies.map((count) => {
      end += count;
      return end - count;
    });
    starts.push(...next.subarray(0, own.length));
    made = {
      above: extended(made.above, end),
      func: extended(made.func, end),
      first: extended(made.first, end),
    };
    own.forEach((func, bit) => {
      if (wanted.copies[bit]) made.func[next[bit]] = func;
    });
    copy(whole, wanted, ofNode, from - first, next, made, chargedTo);
  }
  return { tree: Tree.fromParents(made.above, made.func), first: made.first, chargedTo, starts };
}

interface Copies {
  readonly above: Int32Array;
  readonly func: Int32Array;
  readonly first: Int32Array;
}

interface Wanted {
  /** The labels that occur at or below each node, as bits. */
  readonly labels: Int32Array;
  /** How many copies each label needs. */
  readonly copies: Int32Array;
  /** Nodes of the profile, counted from 1: the first that is charged to each node, and after each the next. */
  readonly charged: Int32Array;
  readonly following: Int32Array;
}

const NONE = new Int32Array(0);

function extended(column: Int32Array, length: number): Int32Array {
  const wide = new Int32Array(length);
  wide.set(column);
  return wide;
}

function wantedBy({ tree, chargedTo }: Placed, ofNode: Numbers, from: number): Wanted {
  const { parent } = tree;
  const labels = new Int32Array(parent.length);
  const charged = new Int32Array(parent.length);
  const following = new Int32Array(chargedTo.length);
  for (let node = 0; node < chargedTo.length; node++) {
    const bit = ofNode[node] - from;
    const to = chargedTo[node];
    if (to === OUTSIDE || bit < 0 || bit >= TOGETHER) continue;
    labels[to] |= 1 << bit;
    following[node] = charged[to];
    charged[to] = node + 1;
  }
  if (from <= 0) labels[0] |= 1;
  // How often each byte occurs, because a loop over the bits of all nodes takes longer.
  const bytes = new Int32Array(4 << 8);
  for (let node = parent.length - 1; node >= 0; node--) {
    const own = labels[node];
    if (node > 0) labels[parent[node]] |= own;
    bytes[own & 0xff]++;
    for (let rest = own >>> 8, row = 0x100; rest; rest >>>= 8, row += 0x100)
      bytes[row | (rest & 0xff)]++;
  }
  const copies = new Int32Array(TOGETHER);
  bytes.forEach((count, at) => {
    for (let bit = 0; bit < 8; bit++) if (at & (1 << bit)) copies[8 * (at >> 8) + bit] += count;
  });
  return { labels, copies, charged, following };
}

/** Make the copies of all nodes, and charge them; `next` is where the next copy of each label stands. */
function copy(
  { tree, first }: Placed,
  { labels, charged, following }: Wanted,
  ofNode: Numbers,
  from: number,
  next: Int32Array,
  made: Copies,
  chargedTo: Int32Array,
): void {
  const { parent, frame } = tree;
  const { above, func } = made;
  // The nodes from the root down to this one, and the last copies of each.
  const path: number[] = [];
  let last = new Int32Array(TOGETHER << 4);
  let depth = -1;
  for (let node = 0; node < labels.length; node++) {
    while (depth >= 0 && path[depth] !== parent[node]) depth--;
    path[++depth] = node;
    const row = TOGETHER * depth;
    if (row === last.length) last = doubled(last);
    for (let bits = labels[node]; bits; bits &= bits - 1) {
      const bit = 31 - Math.clz32(bits & -bits);
      const id = next[bit]++;
      last[row + bit] = id;
      if (node > 0) {
        above[id] = last[row - TOGETHER + bit];
        func[id] = frame[node];
        made.first[id] = first[node];
      }
    }
    for (let each = charged[node]; each; each = following[each - 1]) {
      chargedTo[each - 1] = last[row + ofNode[each - 1] - from];
    }
  }
}
