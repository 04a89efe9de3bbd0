// Answers about single nodes: the details of a node, and nodes whose name contains a text.

import type { FusedKernel } from "../api_types";
import type {
  FindAnswer,
  LineValue,
  MeasureValue,
  MetricValue,
  NodeAnswer,
  PhaseValue,
} from "./answers";
import { OUTSIDE } from "./entries";
import { ALL_PHASES } from "./options";
import type { OtherMetric } from "./profile";
import { Spreads } from "./spreads";
import { OWN, type TopDown } from "./top_down";
import type { Numbers } from "./tree";

const MOST_FOUND = 1_000;
const MOST_LINES = 20;
const MOST_KERNELS = 5;

/** Everything known about a node of the view, or about all nodes of a function, together. */
export function nodeAnswer(view: TopDown, values: Numbers, nodes: readonly number[]): NodeAnswer {
  const [index] = nodes;
  const marks = view.marks(nodes);
  const func = view.tree.frame[index];
  const members = view.members(marks);
  return {
    id: view.functions.example[func],
    ...view.functions.shown(func),
    contexts: members.length,
    hidden: view.hiddenFrames(marks),
    values: measureValues(view, marks),
    own: otherMetrics(view, members),
    phases: phaseValues(view, marks, values),
    lines: lineValues(view, members, values),
    fused: fusedKernels(view, members),
    calls: view.callsOf(Int32Array.from(marks, ownOnly), 1)?.spread(0) ?? null,
  };
}

/** The only group has the nodes themselves. */
const ownOnly = (mark: number) => (mark === OWN ? 0 : OUTSIDE);

/** The nodes whose name or file contains a text, ignoring case, the costliest first. */
export function found(view: TopDown, values: Numbers, text: string): FindAnswer {
  const { tree } = view;
  const inclusive = tree.inclusive(view.exclusive(values));
  const matches = matching(view, text);
  const nodes: number[] = [];
  let value = 0;
  // End of the last subtree that counts: what lies in it counts once.
  let inside = 0;
  for (let node = 1; node < tree.length; node++) {
    if (!matches[tree.frame[node]] || inclusive[node] <= 0) continue;
    nodes.push(node);
    if (node < inside) continue;
    value += inclusive[node];
    inside = tree.endOf(node);
  }
  nodes.sort((a, b) => inclusive[b] - inclusive[a] || a - b);
  return {
    count: nodes.length,
    value,
    total: inclusive[0],
    nodes: nodes.slice(0, MOST_FOUND).map((node) => ({
      source: view.source(node),
      id: view.functions.example[tree.frame[node]],
      value: inclusive[node],
    })),
  };
}

function matching(view: TopDown, text: string): Uint8Array {
  const matches = new Uint8Array(view.functions.length);
  const wanted = text.toLowerCase();
  if (!wanted) return matches;
  const { frames, facts } = view.profile;
  const contains = facts.strings.map((string) => string.toLowerCase().includes(wanted));
  view.functions.ofFrame.forEach((func, frame) => {
    if (contains[frames.name[frame]] || contains[frames.file[frame]]) matches[func] = 1;
  });
  return matches;
}

function measureValues(view: TopDown, marks: Uint8Array): MeasureValue[] {
  return view.profile.facts.measures.map((measure) => ({
    measure,
    ...view.costs(marks, view.profile.values(measure.key)),
  }));
}

function otherMetrics(view: TopDown, members: number[]): MetricValue[] {
  const wanted = new Set(members);
  return view.profile.facts.other.flatMap((metric) => {
    const rows = view.profile.rows(metric.name);
    if (!rows) return [];
    const group = new Int32Array(rows.node.length);
    for (let row = 0; row < group.length; row++) group[row] = wanted.has(rows.node[row]) ? 0 : -1;
    const spread = Spreads.of(rows, group, 1).spread(0);
    const largest = metric.maximum && members.length ? largestAt(view, metric, members) : null;
    if (!spread && !largest) return [];
    const { maximum: _, ...described } = metric;
    return [
      {
        ...described,
        count: spread?.count ?? 0,
        largest,
        mean: spread?.mean ?? 0,
        deviation: spread?.deviation ?? null,
        minimum: spread?.minimum ?? null,
        maximum: spread?.maximum ?? null,
      },
    ];
  });
}

function largestAt(view: TopDown, metric: OtherMetric, members: number[]): number {
  const { end } = view.profile.tree;
  const rows = view.profile.rows(metric.name);
  const inside = new Uint8Array(end.length);
  for (const member of members) inside.fill(1, member, end[member]);
  // Nodes without a row count as zero.
  let largest = 0;
  rows?.node.forEach((node, row) => {
    if (inside[node]) largest = Math.max(largest, (rows.maximum ?? rows.total)[row]);
  });
  return largest;
}

function phaseValues(view: TopDown, marks: Uint8Array, values: Numbers): PhaseValue[] {
  const { facts } = view.profile;
  const wanted = view.options.phase;
  const sums = view.byPhase(marks, values);
  return facts.listed_phases
    .filter((phase) => sums[phase] && (wanted === ALL_PHASES || wanted === phase))
    .map((phase) => ({ phase: facts.phases[phase], value: sums[phase] }));
}

/** Split a Python function's inclusive cost by the line of the call. */
function lineValues(view: TopDown, members: number[], values: Numbers): LineValue[] {
  const { tree, frames, facts } = view.profile;
  if (!members.length || facts.kinds[frames.kind[tree.frame[members[0]]]] !== "python") return [];
  const total = new Map<number, number>();
  let inside = 0;
  for (const node of members) {
    // A recursive call counts for the line of the first one.
    if (node < inside) continue;
    inside = tree.endOf(node);
    const line = frames.line[tree.frame[node]];
    total.set(line, (total.get(line) ?? 0) + view.countedBelow(node, values));
  }
  return [...total]
    .sort(([lineA, a], [lineB, b]) => b - a || lineA - lineB)
    .slice(0, MOST_LINES)
    .map(([line, value]) => ({ line, inclusive: value }));
}

function fusedKernels(view: TopDown, members: number[]): FusedKernel[] {
  const { node, kernel } = view.profile.fused();
  if (!node.length) return [];
  const ofNode = new Map(Array.from(node, (each, index) => [each, kernel[index]]));
  const indices = new Set(members.flatMap((member) => ofNode.get(member) ?? []));
  return [...indices].slice(0, MOST_KERNELS).map((index) => view.profile.facts.fused[index]);
}
