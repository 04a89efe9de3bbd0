// Pivots: what the first level of a tree shows instead of the threads.

import type { Functions } from "./functions";
import { refuse } from "./options";
import type { Profile } from "./profile";

export interface Labels {
  /** Label of each node, -1 for none. */
  readonly ofNode: Int32Array;
  /** Function that represents each label. */
  readonly functions: readonly number[];
  /** Functions that must not occur again below their label. */
  readonly replaced: Uint8Array;
}

/** Return the labels of a pivot, null for pivots that only show or hide the threads. */
export function labels(profile: Profile, functions: Functions, pivot: string): Labels | null {
  if (pivot === "thread" || pivot === "none") return null;
  if (pivot === "phase") return phaseLabels(profile, functions);
  if (!profile.facts.pivots.includes(pivot)) {
    const known = profile.facts.pivots.join(", ");
    refuse(`cannot split the tree by '${pivot}'; this profile has: ${known}`);
  }
  const { tree, frames, facts } = profile;
  const kind = facts.dimensions[pivot];
  const replaced = new Uint8Array(functions.length);
  const number = new Int32Array(functions.length).fill(-1);
  const distinct: number[] = [];
  functions.example.forEach((frame, func) => {
    if (frame < 0 || frames.kind[frame] !== kind) return;
    replaced[func] = 1;
    number[func] = distinct.length;
    distinct.push(func);
  });
  const ofNode = new Int32Array(profile.nodes);
  for (let node = 0; node < ofNode.length; node++) {
    const func = functions.ofNode[node];
    const above = node === 0 ? -1 : ofNode[tree.parent[node]];
    ofNode[node] = replaced[func] ? number[func] : above;
  }
  return { ofNode, functions: distinct, replaced };
}

function phaseLabels(profile: Profile, functions: Functions): Labels {
  const seen = new Uint8Array(profile.facts.phases.length);
  for (let node = 0; node < profile.nodes; node++) seen[profile.shownPhase[node]] = 1;
  const phases = [...seen.keys()].filter((phase) => seen[phase]);
  const number = new Int32Array(profile.facts.phases.length);
  phases.forEach((phase, index) => {
    number[phase] = index;
  });
  const ofNode = new Int32Array(profile.nodes);
  for (let node = 0; node < ofNode.length; node++) ofNode[node] = number[profile.shownPhase[node]];
  return {
    ofNode,
    functions: phases.map((phase) => functions.ofPhase(phase)),
    replaced: new Uint8Array(functions.length),
  };
}
