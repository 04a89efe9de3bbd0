// A tree as columns in depth-first pre-order: a node's subtree is the rows from the node to its end.

export type Numbers = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;

export const NO_NODE = -1;

export class Tree {
  #ends: Int32Array | null = null;

  /** `frame` is what each node is: an index into the frames, or the functions, of its owner. */
  private constructor(
    readonly parent: Int32Array,
    readonly frame: Numbers,
  ) {}

  get length(): number {
    return this.parent.length;
  }

  get end(): Int32Array {
    this.#ends ??= endsOf(this.parent);
    return this.#ends;
  }

  /** The end of one subtree, without those of all others. */
  endOf(node: number): number {
    if (node === 0) return this.length;
    let end = node + 1;
    while (end < this.length && this.parent[end] >= node) end++;
    return end;
  }

  static fromDepth(depth: Numbers, frame: Numbers): Tree {
    const parent = new Int32Array(depth.length);
    const open: number[] = [];
    for (let node = 0; node < depth.length; node++) {
      const level = depth[node];
      parent[node] = level === 0 ? NO_NODE : open[level - 1];
      open[level] = node;
    }
    return new Tree(parent, frame);
  }

  /** Nodes in pre-order; the parent of the root does not matter. */
  static fromParents(parent: Int32Array, frame: Numbers): Tree {
    parent[0] = NO_NODE;
    return new Tree(parent, frame);
  }

  /** How many nodes lie above a node. */
  depth(node: number): number {
    return this.path(node).length - 1;
  }

  /** The nodes from the root down to `node`, both included. */
  path(node: number): number[] {
    const path: number[] = [];
    for (let at = node; at !== NO_NODE; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  /** The child of a node with this frame, or `NO_NODE`. */
  child(above: number, frame: number): number {
    if (above === NO_NODE) return NO_NODE;
    const end = this.endOf(above);
    for (let node = above + 1; node < end; node++) {
      if (this.parent[node] === above && this.frame[node] === frame) return node;
    }
    return NO_NODE;
  }

  /** The sum of a value over each subtree; exact below 2**53. */
  inclusive(exclusive: Numbers): Float64Array {
    const total = new Float64Array(exclusive);
    for (let node = this.length - 1; node > 0; node--) total[this.parent[node]] += total[node];
    return total;
  }

  /** The nodes with this frame, ascending. */
  all(frame: number): number[] {
    const found: number[] = [];
    for (let node = 0; node < this.length; node++) if (this.frame[node] === frame) found.push(node);
    return found;
  }

  /** The nodes with this frame that lie below no other node with it, ascending. */
  outermost(frame: number): number[] {
    const found: number[] = [];
    for (let node = 0; node < this.length; node++) {
      if (this.frame[node] !== frame) continue;
      found.push(node);
      node = this.endOf(node) - 1;
    }
    return found;
  }
}

/** The larger of two whole numbers below 2**31, without a branch that processors cannot predict. */
function larger(a: number, b: number): number {
  const less = a - b;
  return a - (less & (less >> 31));
}

export function endsOf(parent: Int32Array): Int32Array {
  const end = new Int32Array(parent.length);
  for (let node = parent.length - 1; node > 0; node--) {
    const own = larger(end[node], node + 1);
    const above = parent[node];
    end[node] = own;
    end[above] = larger(end[above], own);
  }
  if (parent.length > 0) end[0] = parent.length;
  return end;
}
