// What changed most between two profiles: rows of one table of each, joined by what they are of.

import type { Change, ChangesAnswer, TableRow } from "./answers";
import type { Profile } from "./profile";
import type { GroupTable } from "./tables";

/** A ratio is the usual one if it is this near to it, for this part of the base's cost. */
const NEAR = 0.1;
const NEARLY_ALL = 0.8;
const MOST_ROWS = 200;

/** The largest changes of self cost first, of rows whose name or file contains the text. */
export function changes(
  profiles: readonly Profile[],
  table: (profile: Profile) => GroupTable,
  unit: string,
  text: string,
): ChangesAnswer {
  const [base, other] = profiles.map(table);
  const all = joined(base, other, (row, side) => nameOf(row, profiles[side]));
  const wanted = text.toLowerCase();
  const rows = all.filter(({ row }) =>
    `${row.name}\n${row.file}:${row.line}`.toLowerCase().includes(wanted),
  );
  return {
    unit,
    total: base.total,
    ratio: uniformRatio(all),
    match_count: rows.length,
    match_value: rows.reduce((sum, { before }) => sum + (before ?? 0), 0),
    rows: rows.slice(0, MOST_ROWS),
  };
}

/** What a row is of: its file is known relative to the folder of its run. */
function nameOf({ layer, name, file, line }: TableRow, { facts }: Profile): string {
  const own = file.startsWith(`${facts.cwd}/`) ? file.slice(facts.cwd.length + 1) : file;
  return `${layer}\n${name}\n${own}\n${line}`;
}

function joined(
  base: GroupTable,
  other: GroupTable,
  name: (row: TableRow, side: number) => string,
): Change[] {
  const scale = other.total > 0 ? base.total / other.total : 1;
  const gone = new Map(base.rows.map((row) => [name(row, 0), row]));
  const change = (row: TableRow, before: number | null, after: number | null): Change => ({
    row,
    before,
    after,
    change: (after ?? 0) - (before ?? 0),
    scaled: (after ?? 0) * scale - (before ?? 0),
  });
  const found = other.rows.map((row) => {
    const known = gone.get(name(row, 1));
    gone.delete(name(row, 1));
    return change(row, known?.exclusive ?? null, row.exclusive);
  });
  found.push(...[...gone.values()].map((row) => change(row, row.exclusive, null)));
  return found
    .filter(({ before, after }) => before || after)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

/** The ratio of the totals, if nearly everything has changed by it; else null. */
function uniformRatio(all: readonly Change[]): number | null {
  let [before, after, near] = [0, 0, 0];
  for (const each of all) {
    before += each.before ?? 0;
    after += each.after ?? 0;
  }
  const ratio = after / before;
  if (!(Math.abs(ratio - 1) > NEAR / 2)) return null;
  for (const each of all) {
    const own = (each.after ?? 0) / (each.before ?? 0);
    if (Math.abs(own / ratio - 1) <= NEAR) near += each.before ?? 0;
  }
  return near >= NEARLY_ALL * before ? ratio : null;
}
