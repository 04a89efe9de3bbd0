// Tables of groups: all frames of one operator, module, scope or kernel, or of one source line.

import { best } from "../model/fuzzy";
import type { Query } from "../model/question";
import type { TableAnswer, TableRow } from "./answers";
import { refuse } from "./options";
import type { Profile } from "./profile";
import { Spreads } from "./spreads";
import { CALLS } from "./top_down";
import type { Numbers } from "./tree";

/** More would keep the page busy; a search finds the others. */
const MOST_ROWS = 3_000;
const MOST_NAMED = 12;

/** The lines of any Python code: not a table of the page, but what its source view is made of. */
export const PYTHON_LINES = "python_line";

export interface GroupTable {
  readonly rows: TableRow[];
  readonly total: number;
}

/**
 * A table, its largest rows first; only rows whose name or file contains a text, or the few whose name has some
 * letters in their order.
 */
export function tableAnswer(
  { facts }: Profile,
  { rows, total }: GroupTable,
  unit: string,
  { text = "", fuzzy }: Query,
): TableAnswer {
  const wanted = text.toLowerCase();
  const place = ({ file, line }: TableRow) => (file && line ? `${file}:${line}` : file);
  const found = fuzzy
    ? best(rows, (row) => (row.line ? `${place(row)} ${row.name}` : row.name), fuzzy, MOST_NAMED)
    : rows.filter((row) => `${row.name}\n${place(row)}`.toLowerCase().includes(wanted));
  return {
    unit,
    total,
    match_count: found.length,
    match_value: found.reduce((sum, row) => sum + row.exclusive, 0),
    phases: facts.listed_phases.map((phase) => facts.phases[phase]),
    rows: found.slice(0, MOST_ROWS),
  };
}

/** All groups of a table with their costs. */
export function groupTable(profile: Profile, by: string, measure: string): GroupTable {
  const facts = profile.facts.tables[by];
  if (!facts) {
    const known = Object.keys(profile.facts.tables).filter((name) => name !== PYTHON_LINES);
    refuse(`no table by '${by}'; known: ${known.join(", ")}`);
  }
  checkIsTotal(profile, measure, "tables");
  const { tree, frames } = profile;
  const { ofFrame, example } = profile.groups(by);
  const count = example.length;
  const group = new Int32Array(tree.length);
  // Group of the nearest of each node and its ancestors that has one.
  const nearest = new Int32Array(tree.length);
  const contexts = new Float64Array(count);
  const values = profile.values(measure);
  const exclusive = new Float64Array(count);
  let total = 0;
  for (let node = 0; node < tree.length; node++) {
    const own = ofFrame[tree.frame[node]];
    const near = own < 0 && node > 0 ? nearest[tree.parent[node]] : own;
    group[node] = own;
    nearest[node] = near;
    total += values[node];
    if (own >= 0) contexts[own]++;
    if (near >= 0) exclusive[near] += values[node];
  }
  const phases = phaseSums(profile, group, values, count);
  const calls = callsOf(profile, group, count);
  const rows = Array.from(example, (frame, index): TableRow => {
    const { strings } = profile.facts;
    const ofPhase = phases(index);
    return {
      id: frame,
      name: strings[frames.name[frame]],
      layer: facts.layer,
      file: facts.is_line ? strings[frames.file[frame]] : "",
      line: facts.is_line ? frames.line[frame] : 0,
      inclusive: ofPhase.reduce((sum, value) => sum + value, 0),
      exclusive: exclusive[index],
      phases: ofPhase,
      contexts: contexts[index],
      calls: calls?.spread(index) ?? null,
    };
  });
  const kept = facts.only_with_value ? rows.filter((row) => row.inclusive !== 0) : rows;
  kept.sort((a, b) => b[facts.largest] - a[facts.largest] || a.id - b.id);
  return { rows: kept, total };
}

/** Refuse measures that count events: groups have none. */
export function checkIsTotal(profile: Profile, measure: string, what: string): void {
  if (profile.facts.totals.includes(measure)) return;
  refuse(`${what} show totals of metrics, not '${measure}'; choose another measure`);
}

/**
 * Inclusive sums of each group by phase, in the order in which phases are listed. A subtree's sum is
 * the sum of all nodes up to its end without those before it: both are exact below 2**53.
 */
function phaseSums(profile: Profile, group: Int32Array, values: Numbers, count: number) {
  const { end } = profile.tree;
  const { phases, listed_phases } = profile.facts;
  const soFar = new Float64Array(phases.length);
  const sums = new Float64Array(count * phases.length);
  const open: number[] = [];
  // End of the topmost subtree of each group that is open.
  const inside = new Int32Array(count);
  for (let node = 0; node <= group.length; node++) {
    while (open.length && inside[open[open.length - 1]] === node) {
      const from = (open.pop() ?? 0) * phases.length;
      for (let phase = 0; phase < soFar.length; phase++) sums[from + phase] += soFar[phase];
    }
    if (node === group.length) break;
    const at = group[node];
    if (at >= 0 && node >= inside[at]) {
      inside[at] = end[node];
      open.push(at);
      const from = at * phases.length;
      for (let phase = 0; phase < soFar.length; phase++) sums[from + phase] -= soFar[phase];
    }
    soFar[profile.shownPhase[node]] += values[node];
  }
  return (at: number) => listed_phases.map((phase) => sums[at * phases.length + phase]);
}

function callsOf(profile: Profile, group: Int32Array, count: number): Spreads | null {
  const rows = profile.rows(CALLS);
  if (!rows) return null;
  const ofRow = new Int32Array(rows.node.length);
  for (let row = 0; row < ofRow.length; row++) ofRow[row] = group[rows.node[row]];
  return Spreads.of(rows, ofRow, count);
}
