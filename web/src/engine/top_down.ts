// The tree from the root down, shaped by a view's options, with its costs.

import { entriesOf, OUTSIDE } from "./entries";
import { Functions } from "./functions";
import { merge } from "./merge";
import { ALL_PHASES, refuse, type TreeOptions } from "./options";
import type { Profile } from "./profile";
import { Spreads } from "./spreads";
import type { Numbers, Tree } from "./tree";

export const CALLS = "call_duration_ns";

interface Shape {
  readonly tree: Tree;
  readonly chargedTo: Int32Array;
  readonly shown: Uint8Array;
  readonly source: Int32Array;
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
    const sources = new Int32Array(first.length);
    for (let node = 0; node < sources.length; node++) sources[node] = source[first[node]];
    return new TopDown(profile, functions, options, { tree, chargedTo, shown, source: sources });
  }

  get tree(): Tree {
    return this.shape.tree;
  }

  /** Node of the profile that represents each node of the view. */
  get source(): Int32Array {
    return this.shape.source;
  }

  /** The same tree with the cost of one phase only, or of all. */
  counting(phase: number): TopDown {
    return new TopDown(this.profile, this.functions, { ...this.options, phase }, this.shape);
  }

  /** The node that shows a node of the profile, or receives its cost. */
  nodeOf(source: number): number {
    const { chargedTo } = this.shape;
    if (source >= chargedTo.length) {
      refuse(`no node ${source}: this profile has the nodes 0 to ${chargedTo.length - 1}`);
    }
    if (chargedTo[source] === OUTSIDE) {
      refuse(`node ${source} is not shown; undo a focus or a drop`);
    }
    return chargedTo[source];
  }

  /** The nodes of the profile that a node represents, ascending. */
  members(node: number): number[] {
    const { chargedTo, shown } = this.shape;
    const members: number[] = [];
    for (let source = 0; source < shown.length; source++) {
      if (chargedTo[source] === node && shown[source]) members.push(source);
    }
    return members;
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

  /** Costs of the subtree, of the node itself, and of the whole view. */
  costs(node: number, values: Numbers): { inclusive: number; exclusive: number; total: number } {
    const { chargedTo } = this.shape;
    const end = this.tree.endOf(node);
    let [inclusive, exclusive, total] = [0, 0, 0];
    for (let source = 0; source < chargedTo.length; source++) {
      if (!this.isCounted(source)) continue;
      const [to, value] = [chargedTo[source], values[source]];
      total += value;
      if (to >= node && to < end) inclusive += value;
      if (to === node) exclusive += value;
    }
    return { inclusive, exclusive, total };
  }

  /** Cost of the subtree by phase, whichever phase is counted. */
  byPhase(node: number, values: Numbers): Float64Array {
    const { chargedTo } = this.shape;
    const { shownPhase, facts } = this.profile;
    const end = this.tree.endOf(node);
    const sums = new Float64Array(facts.phases.length);
    for (let source = 0; source < chargedTo.length; source++) {
      const to = chargedTo[source];
      if (to >= node && to < end) sums[shownPhase[source]] += values[source];
    }
    return sums;
  }

  /** Inclusive cost of a node of the profile, of what the view counts. */
  countedBelow(source: number, values: Numbers): number {
    const end = this.profile.tree.endOf(source);
    let total = 0;
    for (let node = source; node < end; node++) {
      if (this.isCounted(node)) total += values[node];
    }
    return total;
  }

  /** The distributions of the calls of some nodes, null where no calls were timed. */
  calls(nodes: readonly number[]): Spreads | null {
    const rows = this.profile.rows(CALLS);
    if (!rows) return null;
    const { chargedTo, shown } = this.shape;
    const place = new Int32Array(this.tree.length).fill(OUTSIDE);
    nodes.forEach((node, index) => {
      place[node] = index;
    });
    const group = new Int32Array(rows.node.length);
    for (let row = 0; row < group.length; row++) {
      const node = rows.node[row];
      group[row] = shown[node] && this.isCounted(node) ? place[chargedTo[node]] : OUTSIDE;
    }
    return Spreads.of(rows, group, nodes.length);
  }

  private isCounted(node: number): boolean {
    const { phase } = this.options;
    return (
      this.shape.chargedTo[node] !== OUTSIDE &&
      (phase === ALL_PHASES || this.profile.shownPhase[node] === phase)
    );
  }
}
