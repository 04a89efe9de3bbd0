// A tree as columns in depth-first pre-order: a node's subtree is the rows from the node to its end.

export type Numbers = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;

export const NO_NODE = -1;

export class Tree {
  /** `frame` is what each node is: an index into the frames, or the functions, of its owner. */
  private constructor(
    readonly parent: Int32Array,
    readonly end: Int32Array,
    readonly depth: Int32Array,
    readonly frame: Numbers,
  ) {}

  get length(): number {
    return this.parent.length;
  }

  static fromDepth(depth: Numbers, frame: Numbers): Tree {
    const count = depth.length;
    const parent = new Int32Array(count);
    const open: number[] = [];
    for (let node = 0; node < count; node++) {
      parent[node] = depth[node] === 0 ? NO_NODE : open[depth[node] - 1];
      open[depth[node]] = node;
    }
    return new Tree(parent, endsOf(parent), new Int32Array(depth), frame);
  }

  /**
   * Order nodes in which a parent precedes its children; children keep their order.
   * `order[node]` is the former number of a node, `position` the reverse.
   */
  static fromParents(
    parent: Int32Array,
    frame: Numbers,
  ): { tree: Tree; order: Int32Array; position: Int32Array } {
    const count = parent.length;
    const size = new Int32Array(count).fill(1);
    for (let node = count - 1; node > 0; node--) size[parent[node]] += size[node];
    const position = new Int32Array(count);
    const next = new Int32Array(count);
    const ordered = {
      parent: new Int32Array(count),
      end: new Int32Array(count),
      depth: new Int32Array(count),
      frame: new Int32Array(count),
    };
    const order = new Int32Array(count);
    for (let node = 0; node < count; node++) {
      const above = node === 0 ? NO_NODE : parent[node];
      const at = node === 0 ? 0 : next[above];
      if (node > 0) next[above] += size[node];
      position[node] = at;
      next[node] = at + 1;
      order[at] = node;
      ordered.parent[at] = node === 0 ? NO_NODE : position[above];
      ordered.depth[at] = node === 0 ? 0 : ordered.depth[position[above]] + 1;
      ordered.end[at] = at + size[node];
      ordered.frame[at] = frame[node];
    }
    const tree = new Tree(ordered.parent, ordered.end, ordered.depth, ordered.frame);
    return { tree, order, position };
  }

  /** The nodes from the root down to `node`, both included. */
  path(node: number): number[] {
    const path: number[] = [];
    for (let at = node; at !== NO_NODE; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  /** The sum of a value over each subtree; exact below 2**53. */
  inclusive(exclusive: Numbers): Float64Array {
    const total = new Float64Array(exclusive);
    for (let node = this.length - 1; node > 0; node--) total[this.parent[node]] += total[node];
    return total;
  }

  inclusiveMaximum(exclusive: Numbers): Float64Array {
    const largest = new Float64Array(exclusive);
    for (let node = this.length - 1; node > 0; node--) {
      const above = this.parent[node];
      if (largest[node] > largest[above]) largest[above] = largest[node];
    }
    return largest;
  }

  /** Which nodes have a proper ancestor in the mask. */
  below(mask: Uint8Array): Uint8Array {
    const below = new Uint8Array(this.length);
    for (let node = 1; node < this.length; node++) {
      const above = this.parent[node];
      below[node] = mask[above] | below[above];
    }
    return below;
  }

  atOrBelow(mask: Uint8Array): Uint8Array {
    const found = this.below(mask);
    for (let node = 0; node < this.length; node++) found[node] |= mask[node];
    return found;
  }

  /** For each node the nearest of itself and its ancestors that is in the mask, or `NO_NODE`. */
  nearest(mask: Uint8Array): Int32Array {
    const nearest = new Int32Array(this.length);
    nearest[0] = mask[0] ? 0 : NO_NODE;
    for (let node = 1; node < this.length; node++) {
      nearest[node] = mask[node] ? node : nearest[this.parent[node]];
    }
    return nearest;
  }

  /** The nodes of any group that have no ancestor in the same group; by group, then ascending. */
  topmost(group: Int32Array, groups: number): number[][] {
    const found: number[][] = Array.from({ length: groups }, () => []);
    const furthest = new Int32Array(groups);
    for (let node = 0; node < this.length; node++) {
      const at = group[node];
      if (at < 0 || node < furthest[at]) continue;
      furthest[at] = this.end[node];
      found[at].push(node);
    }
    return found;
  }

  /** The nodes with this frame that lie below no other node with it, ascending. */
  outermost(frame: number): number[] {
    const group = new Int32Array(this.length);
    for (let node = 0; node < this.length; node++)
      group[node] = this.frame[node] === frame ? 0 : -1;
    return this.topmost(group, 1)[0];
  }
}

function endsOf(parent: Int32Array): Int32Array {
  const end = new Int32Array(parent.length);
  for (let node = parent.length - 1; node >= 0; node--) {
    if (end[node] === 0) end[node] = node + 1;
    const above = parent[node];
    // The last child is met first, and its end is the parent's.
    if (above >= 0 && end[above] === 0) end[above] = end[node];
  }
  return end;
}
