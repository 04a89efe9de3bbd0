// Two profiles in one tree: each node has a value before and a value after.

import { OUTSIDE } from "./entries";
import { merge } from "./merge";
import type { TopDown } from "./top_down";
import type { Numbers, Tree } from "./tree";

/** The view that describes a function, and the function's number there. */
export interface Side {
  readonly view: TopDown;
  readonly func: number;
}

export class Difference {
  private constructor(
    readonly before: TopDown,
    readonly after: TopDown,
    readonly tree: Tree,
    readonly functions: readonly Side[],
    private readonly ofBefore: Int32Array,
    private readonly ofAfter: Int32Array,
  ) {}

  static of(before: TopDown, after: TopDown): Difference {
    const numbers = new Map<string, number>();
    const functions: Side[] = [];
    const columns = [before, after].map((view) => {
      const column = new Int32Array(view.functions.length);
      for (let func = 0; func < column.length; func++) {
        const identity = identityOf(view, func);
        const number = numbers.get(identity) ?? functions.length;
        numbers.set(identity, number);
        functions[number] = { view, func };
        column[func] = number;
      }
      return column;
    });
    // The two roots become one, so each other node of the second tree moves up by one index.
    const offset = before.tree.length - 1;
    const size = offset + after.tree.length;
    const parent = new Int32Array(size);
    const func = new Int32Array(size);
    for (let node = 0; node < before.tree.length; node++) {
      parent[node] = Math.max(before.tree.parent[node], 0);
      func[node] = columns[0][before.tree.frame[node]];
    }
    for (let node = 1; node < after.tree.length; node++) {
      const above = after.tree.parent[node];
      parent[node + offset] = above > 0 ? above + offset : 0;
      func[node + offset] = columns[1][after.tree.frame[node]];
    }
    const merged = merge(parent, func, functions.length);
    const ofAfter = new Int32Array(after.tree.length);
    for (let node = 1; node < ofAfter.length; node++) ofAfter[node] = merged.ofEntry[node + offset];
    const ofBefore = merged.ofEntry.slice(0, before.tree.length);
    return new Difference(before, after, merged.tree, functions, ofBefore, ofAfter);
  }

  /** Exclusive costs of both sides from those of each profile's nodes. */
  exclusive(before: Numbers, after: Numbers): [Float64Array, Float64Array] {
    return [
      this.added(this.ofBefore, this.before.exclusive(before)),
      this.added(this.ofAfter, this.after.exclusive(after)),
    ];
  }

  /** Node of each profile that represents a node, or `OUTSIDE`. */
  sources(): [Int32Array, Int32Array] {
    return [
      this.spread(this.ofBefore, this.before.source),
      this.spread(this.ofAfter, this.after.source),
    ];
  }

  private added(nodes: Int32Array, values: Numbers): Float64Array {
    const sums = new Float64Array(this.tree.length);
    nodes.forEach((node, index) => {
      sums[node] += values[index];
    });
    return sums;
  }

  private spread(nodes: Int32Array, sources: Int32Array): Int32Array {
    const column = new Int32Array(this.tree.length).fill(OUTSIDE);
    nodes.forEach((node, index) => {
      column[node] = sources[index];
    });
    return column;
  }
}

function identityOf(view: TopDown, func: number): string {
  const { kind, name, file, line } = view.functions.shown(func);
  let place = file;
  const folder = `${view.profile.facts.cwd.replace(/\/+$/, "")}/`;
  if (kind === "python" && file.startsWith(folder)) place = file.slice(folder.length);
  // The same library may be installed elsewhere.
  if (kind === "native") place = file.replace(/\/+$/, "").split("/").pop() ?? "";
  return JSON.stringify([kind, name, place, line]);
}
