// Merge siblings that are the same function, from the root down.

import { endsOf, NO_NODE, Tree } from "./tree";

export interface Merged {
  /** `tree.frame` is the function of each node. */
  readonly tree: Tree;
  /** Node of each entry. */
  readonly ofEntry: Int32Array;
  /** First entry of each node. */
  readonly first: Int32Array;
}

/** Make a tree in which no two siblings are the same function, from entries in pre-order. */
export function merge(parent: Int32Array, func: Int32Array, functions: number): Merged {
  const entries = parent.length;
  const end = endsOf(parent);
  const mayMerge = possible(parent, func, functions);
  // The parent's node until the entry's turn comes, then its own.
  const ofEntry = new Int32Array(entries);
  // A node's entries: after each the next one, and of the first entry the last one so far.
  const next = new Int32Array(entries);
  const last = new Int32Array(entries);
  // The node that last had a child of each function, and the first entry of that child.
  const owner = new Int32Array(functions).fill(NO_NODE);
  const child = new Int32Array(functions);
  const waiting = new Int32Array(entries);
  const above = new Int32Array(entries);
  const first = new Int32Array(entries);
  const frame = new Int32Array(entries);
  let [count, size] = [0, 1];
  ofEntry[0] = NO_NODE;
  while (size > 0) {
    const top = waiting[--size];
    const node = count++;
    above[node] = ofEntry[top];
    first[node] = top;
    frame[node] = func[top];
    if (next[top] === 0 && mayMerge[top] === 0) {
      ofEntry[top] = node;
      const moved = node - top;
      for (let entry = top + 1; entry < end[top]; entry++) {
        above[count] = parent[entry] + moved;
        first[count] = entry;
        frame[count] = func[entry];
        ofEntry[entry] = count++;
      }
      continue;
    }
    const only = top + 1;
    if (next[top] === 0 && only < end[top] && end[only] === end[top]) {
      // An only child has no equal.
      ofEntry[top] = node;
      ofEntry[only] = node;
      last[only] = only;
      waiting[size++] = only;
      continue;
    }
    const from = size;
    let member = top;
    do {
      ofEntry[member] = node;
      for (let entry = member + 1; entry < end[member]; entry = end[entry]) {
        const what = func[entry];
        if (owner[what] === node) {
          const before = child[what];
          next[last[before]] = entry;
          last[before] = entry;
        } else {
          owner[what] = node;
          child[what] = entry;
          last[entry] = entry;
          ofEntry[entry] = node;
          waiting[size++] = entry;
        }
      }
      member = next[member];
    } while (member !== 0);
    // The first child has its turn next.
    for (let low = from, high = size - 1; low < high; low++, high--) {
      const entry = waiting[low];
      waiting[low] = waiting[high];
      waiting[high] = entry;
    }
  }
  const tree = Tree.fromParents(above.slice(0, count), frame.slice(0, count));
  return { tree, ofEntry, first: first.subarray(0, count) };
}

/** Whether an entry, or one below it, may have equal children: there are none where the value is 0. */
function possible(parent: Int32Array, func: Int32Array, functions: number): Uint8Array {
  const may = new Uint8Array(parent.length);
  const last = new Int32Array(functions).fill(NO_NODE);
  for (let entry = 1; entry < parent.length; entry++) {
    // All entries between the parent and this one lie below the parent, but not all are its children.
    const above = parent[entry];
    const what = func[entry];
    if (last[what] > above) may[above] = 1;
    last[what] = entry;
  }
  for (let entry = parent.length - 1; entry > 0; entry--) may[parent[entry]] |= may[entry];
  return may;
}
