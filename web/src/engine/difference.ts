// Several profiles in one tree: each node has a value of each profile that has the node.

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
    readonly views: readonly TopDown[],
    readonly tree: Tree,
    /** The last view that has a function describes it. */
    readonly functions: readonly Side[],
    /** For each view: the node that each of its nodes became. */
    private readonly ofView: readonly Int32Array[],
  ) {}

  static of(views: readonly TopDown[]): Difference {
    const numbers = new Map<string, number>();
    const functions: Side[] = [];
    // The roots become one.
    const size = views.reduce((sum, view) => sum + view.tree.length - 1, 1);
    const parent = new Int32Array(size);
    const func = new Int32Array(size);
    let end = 0;
    const offsets = views.map((view) => {
      const column = new Int32Array(view.functions.length);
      for (let each = 0; each < column.length; each++) {
        const identity = identityOf(view, each);
        const number = numbers.get(identity) ?? functions.length;
        numbers.set(identity, number);
        functions[number] = { view, func: each };
        column[each] = number;
      }
      const offset = end;
      const { tree } = view;
      func[0] = column[tree.frame[0]];
      for (let node = 1; node < tree.length; node++) {
        const above = tree.parent[node];
        parent[node + offset] = above > 0 ? above + offset : 0;
        func[node + offset] = column[tree.frame[node]];
      }
      end += tree.length - 1;
      return offset;
    });
    const merged = merge(parent, func, functions.length);
    const ofView = views.map(({ tree }, side) => {
      const nodes = merged.ofEntry.slice(offsets[side], offsets[side] + tree.length);
      nodes[0] = 0;
      return nodes;
    });
    return new Difference(views, merged.tree, functions, ofView);
  }

  /** Exclusive costs of each profile from those of its own nodes. */
  exclusive(valuesOf: (view: TopDown) => Numbers): Float64Array[] {
    return this.views.map((view, side) => {
      const values = view.exclusive(valuesOf(view));
      const sums = new Float64Array(this.tree.length);
      this.ofView[side].forEach((node, index) => {
        sums[node] += values[index];
      });
      return sums;
    });
  }

  /** Node of each view that a node stands for, or `OUTSIDE`. */
  nodes(): Int32Array[] {
    return this.ofView.map((ofNode) => {
      const column = new Int32Array(this.tree.length).fill(OUTSIDE);
      for (let node = 0; node < ofNode.length; node++) column[ofNode[node]] = node;
      return column;
    });
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
