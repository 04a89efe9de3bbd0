// Merge siblings that are the same function, from the root down.

import { Pairs } from "./pairs";
import { Tree } from "./tree";

export interface Merged {
  /** `tree.frame` is the function of each node. */
  readonly tree: Tree;
  /** Node of each entry. */
  readonly ofEntry: Int32Array;
  /** First entry of each node. */
  readonly first: Int32Array;
}

/** Make a tree in which no two siblings are the same function; a parent precedes its children. */
export function merge(parent: Int32Array, func: Int32Array): Merged {
  const made = new Pairs(parent.length);
  const number = new Int32Array(parent.length);
  const first = new Int32Array(parent.length);
  // The root is the pair of itself and its function, which no other entry can be: no parent is -1.
  made.number(-1, func[0]);
  for (let entry = 1; entry < parent.length; entry++) {
    const before = made.count;
    number[entry] = made.number(number[parent[entry]], func[entry]);
    if (made.count > before) first[before] = entry;
  }
  const count = made.count;
  const parents = made.first.slice(0, count);
  parents[0] = 0;
  const { tree, order, position } = Tree.fromParents(parents, made.second.subarray(0, count));
  for (let entry = 0; entry < number.length; entry++) number[entry] = position[number[entry]];
  const firsts = new Int32Array(count);
  for (let node = 0; node < count; node++) firsts[node] = first[order[node]];
  return { tree, ofEntry: number, first: firsts };
}
