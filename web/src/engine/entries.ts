// Which frames a tree shows and which costs it counts, before equal siblings are merged.

import { doubled } from "./doubled";
import type { Functions } from "./functions";
import { type Edit, refuse, type TreeOptions } from "./options";
import { type Labels, labels } from "./pivot";
import type { Profile } from "./profile";

export const OUTSIDE = -1;

/** Rows of a tree; a parent precedes its children, entry 0 is the root. */
export interface Entries {
  readonly parent: Int32Array;
  readonly func: Int32Array;
  /** Node of the profile; for a label the first node below it. */
  readonly source: Int32Array;
  /** Entry that receives each node's cost, or `OUTSIDE`. */
  readonly chargedTo: Int32Array;
  /** Entry that shows the node itself, or `OUTSIDE`. */
  readonly shownAs: Int32Array;
}

interface Masks {
  readonly shown: Uint8Array;
  readonly counted: Uint8Array;
}

export function entriesOf(profile: Profile, functions: Functions, options: TreeOptions): Entries {
  const { tree } = profile;
  const func = new Int32Array(tree.length);
  for (let node = 0; node < tree.length; node++) func[node] = functions.ofFrame[tree.frame[node]];
  const { shown, counted } = selection(profile, func, functions, options);
  const split = labels(profile, functions, options.pivot);
  if (split) {
    for (let node = 0; node < tree.length; node++) if (split.replaced[func[node]]) shown[node] = 0;
  }
  shown[0] = 1;
  for (let node = 0; node < tree.length; node++) shown[node] &= counted[node];
  const nearest = tree.nearest(shown);
  for (let node = 0; node < tree.length; node++) {
    // With a focus, the nearest shown frame may lie above the focus: the root replaces it.
    nearest[node] = counted[node] ? Math.max(nearest[node], 0) : OUTSIDE;
  }
  const whole = joined(profile, func, nearest);
  return split ? splitBy(whole, func, nearest, split) : whole;
}

function joined(profile: Profile, func: Int32Array, nearest: Int32Array): Entries {
  const number = new Int32Array(nearest.length).fill(OUTSIDE);
  let count = 0;
  for (let node = 0; node < nearest.length; node++) {
    if (nearest[node] === node || node === 0) number[node] = count++;
  }
  const parent = new Int32Array(count);
  const functions = new Int32Array(count);
  const source = new Int32Array(count);
  const chargedTo = new Int32Array(nearest.length);
  const shownAs = new Int32Array(nearest.length).fill(OUTSIDE);
  for (let node = 0; node < nearest.length; node++) {
    chargedTo[node] = nearest[node] === OUTSIDE ? OUTSIDE : number[nearest[node]];
    const entry = number[node];
    if (entry === OUTSIDE) continue;
    if (nearest[node] !== OUTSIDE) shownAs[node] = chargedTo[node];
    source[entry] = node;
    functions[entry] = func[node];
    parent[entry] = node === 0 ? 0 : Math.max(chargedTo[profile.tree.parent[node]], 0);
  }
  return { parent, func: functions, source, chargedTo, shownAs };
}

/** Give each label a copy of the paths that lead to nodes with that label. */
function splitBy(whole: Entries, func: Int32Array, nearest: Int32Array, split: Labels): Entries {
  const nodes = nearest.length;
  const chargedTo = new Int32Array(nodes).fill(OUTSIDE);
  const shownAs = new Int32Array(nodes).fill(OUTSIDE);
  const rows = new EntryRows(func[0], whole.parent.length);
  for (const [label, members] of membersByLabel(nearest, split)) {
    const wanted = new Uint8Array(whole.parent.length);
    for (const node of members) {
      for (let at = whole.chargedTo[node]; at > 0 && !wanted[at]; at = whole.parent[at]) {
        wanted[at] = 1;
      }
    }
    const below = label < 0 ? 0 : rows.add(0, split.functions[label], members[0]);
    const number = new Int32Array(whole.parent.length).fill(below);
    for (let entry = 1; entry < wanted.length; entry++) {
      if (!wanted[entry]) continue;
      number[entry] = rows.add(number[whole.parent[entry]], whole.func[entry], whole.source[entry]);
    }
    for (const node of members) {
      chargedTo[node] = number[whole.chargedTo[node]];
      if (whole.shownAs[node] !== OUTSIDE) shownAs[node] = number[whole.shownAs[node]];
    }
  }
  return { ...rows.columns(), chargedTo, shownAs };
}

/** The counted nodes of each label, ascending; nodes without a label come first. */
function membersByLabel(nearest: Int32Array, split: Labels): [number, Int32Array][] {
  const sizes = new Int32Array(split.functions.length + 1);
  for (let node = 0; node < nearest.length; node++) {
    if (nearest[node] !== OUTSIDE) sizes[split.ofNode[node] + 1]++;
  }
  const members = Array.from(sizes, (size) => new Int32Array(size));
  const filled = new Int32Array(sizes.length);
  for (let node = 0; node < nearest.length; node++) {
    if (nearest[node] === OUTSIDE) continue;
    const label = split.ofNode[node] + 1;
    members[label][filled[label]++] = node;
  }
  return members.flatMap((some, label) => (some.length ? [[label - 1, some]] : []));
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

function selection(
  profile: Profile,
  func: Int32Array,
  functions: Functions,
  options: TreeOptions,
): Masks {
  const { facts } = profile;
  const thread = facts.layers.indexOf("thread");
  const hiddenLayer = facts.layers.map((name) => options.hidden.includes(name));
  const isHidden = functions.layer.map((layer, index) =>
    hiddenLayer[layer] ||
    (!options.library && functions.library[index]) ||
    (options.pivot !== "thread" && layer === thread)
      ? 1
      : 0,
  );
  const shown = new Uint8Array(func.length);
  for (let node = 0; node < func.length; node++) shown[node] = isHidden[func[node]] ? 0 : 1;
  const masks = { shown, counted: new Uint8Array(func.length).fill(1) };
  for (const edit of options.edits) apply(profile, func, functions, edit, masks);
  return masks;
}

function apply(
  profile: Profile,
  func: Int32Array,
  functions: Functions,
  edit: Edit,
  { shown, counted }: Masks,
): void {
  const { tree } = profile;
  if (edit.kind === "root") {
    checkTarget(edit.target, tree.length, "node");
    counted.fill(0, 0, edit.target);
    counted.fill(0, tree.end[edit.target]);
    shown[edit.target] = 1;
    return;
  }
  checkTarget(edit.target, functions.ofFrame.length, "frame");
  const wanted = functions.ofFrame[edit.target];
  const targets = new Uint8Array(func.length);
  for (let node = 0; node < func.length; node++) targets[node] = func[node] === wanted ? 1 : 0;
  const inside = edit.kind === "collapse" ? tree.below(targets) : tree.atOrBelow(targets);
  for (let node = 0; node < func.length; node++) {
    switch (edit.kind) {
      case "focus":
        counted[node] &= inside[node];
        shown[node] |= targets[node];
        break;
      case "hide":
        shown[node] &= targets[node] ^ 1;
        break;
      case "collapse":
        if (inside[node]) shown[node] = 0;
        else if (targets[node]) shown[node] = 1;
        break;
      case "drop":
        counted[node] &= inside[node] ^ 1;
        break;
    }
  }
}

function checkTarget(target: number, size: number, what: string): void {
  if (target >= size) {
    refuse(`no ${what} ${target}: this profile has the ${what}s 0 to ${size - 1}`);
  }
}
