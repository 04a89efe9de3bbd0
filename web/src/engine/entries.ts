// Which frames a tree shows and which costs it counts, before equal siblings are merged.

import type { Functions } from "./functions";
import { type Edit, refuse, type TreeOptions } from "./options";
import type { Profile } from "./profile";
import type { Tree } from "./tree";

export const OUTSIDE = -1;

/** Rows of a tree in pre-order, entry 0 is the root. */
export interface Entries {
  readonly parent: Int32Array;
  readonly func: Int32Array;
  /** Node of the profile. */
  readonly source: Int32Array;
  /** Entry that receives each node's cost, or `OUTSIDE`. */
  readonly chargedTo: Int32Array;
  /** Whether this entry shows the node itself. */
  readonly shown: Uint8Array;
}

interface Masks {
  readonly shown: Uint8Array;
  readonly counted: Uint8Array;
  /** Functions that only an edit shows where library functions are hidden. */
  readonly ofLibrary: Uint8Array;
}

export function entriesOf(profile: Profile, functions: Functions, options: TreeOptions): Entries {
  const masks = selection(profile, functions, options);
  return joined(profile.tree.parent, functions.ofNode, masks);
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
  const ofLibrary = functions.library.map((is, index) =>
    is && !hidden[functions.layer[index]] ? 1 : 0,
  );
  const masks = { shown, counted: new Uint8Array(ofNode.length).fill(1), ofLibrary };
  for (const edit of options.edits) apply(profile.tree, functions, edit, masks);
  return masks;
}

function apply(tree: Tree, functions: Functions, edit: Edit, masks: Masks): void {
  const { kind, target } = edit;
  const { shown, counted, ofLibrary } = masks;
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
      else if (kind === "open" && node < inside && ofLibrary[ofNode[node]]) shown[node] = 1;
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
