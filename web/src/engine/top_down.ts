// The tree from the root down, shaped by a view's options, with its costs.

import { entriesOf, OUTSIDE } from "./entries";
import { Functions } from "./functions";
import { merge } from "./merge";
import { ALL_PHASES, refuse, type TreeOptions } from "./options";
import type { Profile } from "./profile";
import { type Placed, splitBy } from "./split";
import { Spreads } from "./spreads";
import type { Numbers, Tree } from "./tree";

export const CALLS = "call_duration_ns";
const BELOW = 1;
export const OWN = 2;

interface Shape extends Placed {
  /** Whether each node of the profile has a node of its own, or of its equals. */
  readonly shown: Uint8Array;
}

export class TopDown {
  private constructor(
    readonly profile: Profile,
    readonly functions: Functions,
    readonly options: TreeOptions,
    private readonly shape: Shape,
  ) {}

  static of(profile: Profile, options: TreeOptions): TopDown {
    const functions = Functions.of(profile, options.byLine);
    const { parent, func, source, chargedTo, shown } = entriesOf(profile, functions, options);
    const { tree, ofEntry, first } = merge(parent, func, functions.length);
    for (let node = 0; node < chargedTo.length; node++) {
      if (chargedTo[node] !== OUTSIDE) chargedTo[node] = ofEntry[chargedTo[node]];
    }
    for (let node = 0; node < first.length; node++) first[node] = source[first[node]];
    const whole = { tree, chargedTo, first, starts: [0] };
    const placed = options.pivot === "phase" ? byPhase(whole, profile, functions) : whole;
    return new TopDown(profile, functions, options, { ...placed, shown });
  }

  get tree(): Tree {
    return this.shape.tree;
  }

  /** Node of the profile that represents each node of the view. */
  get first(): Int32Array {
    return this.shape.first;
  }

  /** The number by which `nodeOf` knows a node: copies of one node differ in their label. */
  source(node: number): number {
    return this.first[node] + this.labelOf(node) * this.profile.nodes;
  }

  /** The label whose copy a node is, 0 for none. */
  labelOf(node: number): number {
    const { starts } = this.shape;
    let label = starts.length - 1;
    while (starts[label] > node) label--;
    return label;
  }

  /** The same tree with the cost of one phase only, or of all. */
  counting(phase: number): TopDown {
    return new TopDown(this.profile, this.functions, { ...this.options, phase }, this.shape);
  }

  /** The node that shows a node of the profile, or receives its cost; or its copy with a label. */
  nodeOf(source: number): number {
    const { chargedTo, starts } = this.shape;
    const nodes = chargedTo.length;
    const label = Math.floor(source / nodes);
    if (label >= starts.length) {
      refuse(`no node ${source}: this profile has the nodes 0 to ${nodes - 1}`);
    }
    const own = chargedTo[source % nodes];
    if (own === OUTSIDE) refuse(`node ${source} is not shown; undo a focus or a drop`);
    if (label === 0) return source === 0 ? 0 : own;
    let at = starts[label];
    if (this.labelOf(at) !== label) at = OUTSIDE;
    const path = source % nodes === 0 ? [] : this.tree.path(own).slice(this.labelOf(own) ? 2 : 1);
    for (const node of path) at = this.tree.child(at, this.tree.frame[node]);
    return at < 0 ? refuse(`node ${source} is not shown; undo a focus or a drop`) : at;
  }

  /** What each node of the view is to some nodes: `OWN` for one of them, `BELOW` one, or neither. */
  marks(nodes: readonly number[]): Uint8Array {
    const marks = new Uint8Array(this.tree.length);
    for (const node of nodes) {
      if (marks[node] !== BELOW) marks.fill(BELOW, node, this.tree.endOf(node));
    }
    for (const node of nodes) marks[node] = OWN;
    return marks;
  }

  /** The nodes of the profile that the marked nodes represent, ascending. */
  members(marks: Uint8Array): number[] {
    const { chargedTo, shown } = this.shape;
    const members: number[] = [];
    for (let source = 0; source < shown.length; source++) {
      if (shown[source] && marks[chargedTo[source]] === OWN) members.push(source);
    }
    return members;
  }

  /** How many library functions are merged into the marked nodes. */
  hiddenFrames(marks: Uint8Array): number {
    const { chargedTo, shown } = this.shape;
    const { ofNode, library } = this.functions;
    const found = new Set<number>();
    for (let node = 0; node < shown.length; node++) {
      const isHidden = !shown[node] && library[ofNode[node]];
      if (isHidden && marks[chargedTo[node]] === OWN) found.add(ofNode[node]);
    }
    return found.size;
  }

  /** The node that receives the cost of a node of the profile, or `OUTSIDE` where it does not count. */
  receiver(source: number): number {
    return this.#isCounted(source) ? this.shape.chargedTo[source] : OUTSIDE;
  }

  /** Exclusive cost of each node of the view, from that of each node of the profile. */
  exclusive(values: Numbers): Float64Array {
    const sums = new Float64Array(this.tree.length);
    const { chargedTo } = this.shape;
    const { phase } = this.options;
    const { shownPhase } = this.profile;
    for (let node = 0; node < chargedTo.length; node++) {
      const to = chargedTo[node];
      if (to === OUTSIDE || (phase !== ALL_PHASES && shownPhase[node] !== phase)) continue;
      sums[to] += values[node];
    }
    return sums;
  }

  /** Costs of the marked nodes with all below them, of the nodes themselves, and of the whole view. */
  costs(
    marks: Uint8Array,
    values: Numbers,
  ): { inclusive: number; exclusive: number; total: number } {
    const { chargedTo } = this.shape;
    let [inclusive, exclusive, total] = [0, 0, 0];
    for (let source = 0; source < chargedTo.length; source++) {
      if (!this.#isCounted(source)) continue;
      const [mark, value] = [marks[chargedTo[source]], values[source]];
      total += value;
      if (mark) inclusive += value;
      if (mark === OWN) exclusive += value;
    }
    return { inclusive, exclusive, total };
  }

  /** Cost of the marked nodes with all below them by phase, whichever phase is counted. */
  byPhase(marks: Uint8Array, values: Numbers): Float64Array {
    const { chargedTo } = this.shape;
    const { shownPhase, facts } = this.profile;
    const sums = new Float64Array(facts.phases.length);
    for (let source = 0; source < chargedTo.length; source++) {
      if (marks[chargedTo[source]]) sums[shownPhase[source]] += values[source];
    }
    return sums;
  }

  /** Inclusive cost of a node of the profile, of what the view counts. */
  countedBelow(source: number, values: Numbers): number {
    const end = this.profile.tree.endOf(source);
    let total = 0;
    for (let node = source; node < end; node++) {
      if (this.#isCounted(node)) total += values[node];
    }
    return total;
  }

  /** The distributions of the calls of some nodes, null where no calls were timed. */
  calls(nodes: readonly number[]): Spreads | null {
    const place = new Int32Array(this.tree.length).fill(OUTSIDE);
    nodes.forEach((node, index) => {
      place[node] = index;
    });
    return this.callsOf(place, nodes.length);
  }

  /** The same of groups of nodes: `groupOf` is the group of each node of the view, or `OUTSIDE`. */
  callsOf(groupOf: Numbers, groups: number): Spreads | null {
    const rows = this.profile.rows(CALLS);
    if (!rows) return null;
    const { chargedTo, shown } = this.shape;
    const group = new Int32Array(rows.node.length);
    for (let row = 0; row < group.length; row++) {
      const node = rows.node[row];
      group[row] = shown[node] && this.#isCounted(node) ? groupOf[chargedTo[node]] : OUTSIDE;
    }
    return Spreads.of(rows, group, groups);
  }

  #isCounted(node: number): boolean {
    const { phase } = this.options;
    return (
      this.shape.chargedTo[node] !== OUTSIDE &&
      (phase === ALL_PHASES || this.profile.shownPhase[node] === phase)
    );
  }
}

function byPhase(whole: Placed, profile: Profile, functions: Functions): Placed {
  const ofPhases = profile.facts.phases.map((_, phase) => functions.ofPhase(phase));
  const labels = profile.shownPhase.map((phase) => phase + 1);
  return splitBy(whole, labels, [functions.ofNode[0], ...ofPhases]);
}
