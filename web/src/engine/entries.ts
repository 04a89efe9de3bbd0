// Which frames a tree shows and which costs it counts, before equal siblings are merged.

import { doubled } from "./doubled";
import type { Functions } from "./functions";
import { type Edit, refuse, type TreeOptions } from "./options";
import { type Labels, labels } from "./pivot";
import type { Profile } from "./profile";
import type { Tree } from "./tree";

export const OUTSIDE = -1;

/** Rows of a tree in pre-order, entry 0 is the root. */
export interface Entries {
  readonly parent: Int32Array;
  readonly func: Int32Array;
  /** Node of the profile; for a label the first node below it. */
  readonly source: Int32Array;
  /** Entry that receives each node's cost, or `OUTSIDE`. */
  readonly chargedTo: Int32Array;
  /** Whether this entry shows the node itself. */
  readonly shown: Uint8Array;
}

interface Masks {
  readonly shown: Uint8Array;
  readonly counted: Uint8Array;
}

export function entriesOf(profile: Profile, functions: Functions, options: TreeOptions): Entries {
  const masks = selection(profile, functions, options);
  const split = labels(profile, functions, options.pivot);
  if (split) {
    const { ofNode } = functions;
    for (let node = 0; node < ofNode.length; node++) {
      if (split.replaced[ofNode[node]]) masks.shown[node] = 0;
    }
  }
  const whole = joined(profile.tree.parent, functions.ofNode, masks);
  return split ? splitBy(whole, split) : whole;
}

function joined(above: Int32Array, func: Int32Array, { shown, counted }: Masks): Entries {
  const nodes = above.length;
  const parent = new Int32Array(nodes);
  const functions = new Int32Array(nodes);
  const source = new Int32Array(nodes);
  const chargedTo = new Int32Array(nodes);
  functions[0] = func[0];
  shown[0] = counted[0];
  chargedTo[0] = counted[0] ? 0 : OUTSIDE;
  let count = 1;
  for (let node = 1; node < nodes; node++) {
    if (!counted[node]) {
      chargedTo[node] = OUTSIDE;
      shown[node] = 0;
      continue;
    }
    // With a focus, the nearest shown frame may lie above the focus: the root replaces it.
    const nearest = Math.max(chargedTo[above[node]], 0);
    if (shown[node]) {
      parent[count] = nearest;
      functions[count] = func[node];
      source[count] = node;
      chargedTo[node] = count++;
    } else chargedTo[node] = nearest;
  }
  return {
    parent: parent.subarray(0, count),
    func: functions.subarray(0, count),
    source: source.subarray(0, count),
    chargedTo,
    shown,
  };
}

/** Give each label a copy of the paths that lead to nodes with that label; none comes first. */
function splitBy(whole: Entries, split: Labels): Entries {
  const { parent, func, source, chargedTo, shown } = whole;
  const entries = parent.length;
  const splitTo = new Int32Array(chargedTo.length).fill(OUTSIDE);
  const rows = new EntryRows(func[0], entries);
  const members = membersByLabel(chargedTo, split);
  // The last label that wanted an entry, and the copy of each entry.
  const wanted = new Int32Array(entries).fill(-1);
  const copy = new Int32Array(entries);
  for (let label = 0; label < members.length; label++) {
    const some = members[label];
    if (!some.length) continue;
    for (let index = 0; index < some.length; index++) {
      for (let at = chargedTo[some[index]]; at > 0 && wanted[at] !== label; at = parent[at]) {
        wanted[at] = label;
      }
    }
    copy[0] = label ? rows.add(0, split.functions[label - 1], some[0]) : 0;
    for (let entry = 1; entry < entries; entry++) {
      if (wanted[entry] === label) {
        copy[entry] = rows.add(copy[parent[entry]], func[entry], source[entry]);
      }
    }
    for (let index = 0; index < some.length; index++) {
      splitTo[some[index]] = copy[chargedTo[some[index]]];
    }
  }
  return { ...rows.columns(), chargedTo: splitTo, shown };
}

/** The counted nodes of each label, ascending; nodes without a label come first. */
function membersByLabel(chargedTo: Int32Array, { ofNode, functions }: Labels): Int32Array[] {
  const sizes = new Int32Array(functions.length + 1);
  for (let node = 0; node < chargedTo.length; node++) {
    if (chargedTo[node] !== OUTSIDE) sizes[ofNode[node] + 1]++;
  }
  const members = Array.from(sizes, (size) => new Int32Array(size));
  const filled = new Int32Array(sizes.length);
  for (let node = 0; node < chargedTo.length; node++) {
    if (chargedTo[node] === OUTSIDE) continue;
    const label = ofNode[node] + 1;
    members[label][filled[label]++] = node;
  }
  return members;
}

/** Columns of entries that grow. */
class EntryRows {
  private parent: Int32Array;
  private func: Int32Array;
  private source: Int32Array;
  private count = 1;

  constructor(root: number, expected: number) {
    this.parent = new Int32Array(2 * expected);
    this.func = new Int32Array(2 * expected);
    this.source = new Int32Array(2 * expected);
    this.func[0] = root;
  }

  /** Add an entry and return its number. */
  add(parent: number, func: number, source: number): number {
    if (this.count === this.parent.length) {
      this.parent = doubled(this.parent);
      this.func = doubled(this.func);
      this.source = doubled(this.source);
    }
    this.parent[this.count] = parent;
    this.func[this.count] = func;
    this.source[this.count] = source;
    return this.count++;
  }

  columns(): Pick<Entries, "parent" | "func" | "source"> {
    const { count } = this;
    return {
      parent: this.parent.subarray(0, count),
      func: this.func.subarray(0, count),
      source: this.source.subarray(0, count),
    };
  }
}

function selection(profile: Profile, functions: Functions, options: TreeOptions): Masks {
  const { layers } = profile.facts;
  const hidden = layers.map(
    (name) => options.hidden.includes(name) || (options.pivot !== "thread" && name === "thread"),
  );
  const isShown = functions.layer.map((layer, index) =>
    hidden[layer] || (!options.library && functions.library[index]) ? 0 : 1,
  );
  const { ofNode } = functions;
  const shown = new Uint8Array(ofNode.length);
  for (let node = 0; node < ofNode.length; node++) shown[node] = isShown[ofNode[node]];
  const masks = { shown, counted: new Uint8Array(ofNode.length).fill(1) };
  for (const edit of options.edits) apply(profile.tree, functions, edit, masks);
  return masks;
}

function apply(tree: Tree, functions: Functions, edit: Edit, { shown, counted }: Masks): void {
  const { kind, target } = edit;
  const { end } = tree;
  if (kind === "root") {
    checkTarget(target, end.length, "node");
    counted.fill(0, 0, target);
    counted.fill(0, end[target]);
    shown[target] = 1;
    return;
  }
  checkTarget(target, functions.ofFrame.length, "frame");
  const { ofNode } = functions;
  const wanted = functions.ofFrame[target];
  // End of the last subtree that begins with a node wanted.
  let inside = 0;
  for (let node = 0; node < end.length; node++) {
    if (ofNode[node] !== wanted) {
      if (kind === "focus" && node >= inside) counted[node] = 0;
      continue;
    }
    if (kind === "hide") shown[node] = 0;
    else if (kind === "focus") shown[node] = 1;
    if (node < inside) continue;
    inside = end[node];
    if (kind === "collapse") {
      shown[node] = 1;
      shown.fill(0, node + 1, inside);
    } else if (kind === "drop") counted.fill(0, node, inside);
  }
}

function checkTarget(target: number, size: number, what: string): void {
  if (target >= size) {
    refuse(`no ${what} ${target}: this profile has the ${what}s 0 to ${size - 1}`);
  }
}
