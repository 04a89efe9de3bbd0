// Pivots: what the first level of a tree shows instead of the threads.

import type { Functions } from "./functions";
import { refuse } from "./options";
import type { Profile } from "./profile";

export interface Labels {
  /** Label of each node, counted from `from`; label 0 is none. */
  readonly ofNode: Uint8Array | Int32Array;
  readonly from: number;
  /** Function that represents each label; the first is the root's. */
  readonly functions: readonly number[];
  /** Functions that must not occur again below their label. */
  readonly replaced: Uint8Array | null;
}

/** Return the labels of a pivot, null for pivots that only show or hide the threads. */
export function labels(profile: Profile, functions: Functions, pivot: string): Labels | null {
  if (pivot === "thread" || pivot === "none") return null;
  const { tree, frames, facts, shownPhase } = profile;
  if (pivot === "phase") {
    const ofPhases = facts.phases.map((_, phase) => functions.ofPhase(phase));
    const named = [functions.ofNode[0], ...ofPhases];
    return { ofNode: shownPhase, from: 1, functions: named, replaced: null };
  }
  if (!facts.pivots.includes(pivot)) {
    const known = facts.pivots.join(", ");
    refuse(`cannot split the tree by '${pivot}'; this profile has: ${known}`);
  }
  const kind = facts.dimensions[pivot];
  const replaced = new Uint8Array(functions.length);
  const number = new Int32Array(functions.length);
  const distinct = [functions.ofNode[0]];
  functions.example.forEach((frame, func) => {
    if (frame < 0 || frames.kind[frame] !== kind) return;
    replaced[func] = 1;
    number[func] = distinct.length;
    distinct.push(func);
  });
  const ofNode = new Int32Array(profile.nodes);
  for (let node = 1; node < ofNode.length; node++) {
    const func = functions.ofNode[node];
    ofNode[node] = replaced[func] ? number[func] : ofNode[tree.parent[node]];
  }
  return { ofNode, from: 0, functions: distinct, replaced };
}
