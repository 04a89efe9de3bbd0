// What changed most between two profiles: rows of one table of each, joined by what they are of.

import type { TableAnswer, TableRow } from "../engine/answers";

export interface Change {
  /** The row of the other profile, or of the base if it is gone. */
  readonly row: TableRow;
  readonly before: number | null;
  readonly after: number | null;
  /** Of self cost. */
  readonly change: number;
  /** The change that is left if the whole of the other is scaled to that of the base. */
  readonly scaled: number;
}

/** A ratio is the usual one if it is this near to it, for this part of the base's cost. */
const NEAR = 0.1;
const NEARLY_ALL = 0.8;
const MOST_ROWS = 200;

/** Join two tables; `name` says of a row of either what it is of. Largest changes first. */
export function changes(
  base: TableAnswer,
  other: TableAnswer,
  name: (row: TableRow, side: number) => string,
): Change[] {
  const scale = other.total > 0 ? base.total / other.total : 1;
  const gone = new Map(base.rows.map((row) => [name(row, 0), row]));
  const joined = (row: TableRow, before: number | null, after: number | null): Change => ({
    row,
    before,
    after,
    change: (after ?? 0) - (before ?? 0),
    scaled: (after ?? 0) * scale - (before ?? 0),
  });
  const found = other.rows.map((row) => {
    const known = gone.get(name(row, 1));
    gone.delete(name(row, 1));
    return joined(row, known?.exclusive ?? null, row.exclusive);
  });
  found.push(...[...gone.values()].map((row) => joined(row, row.exclusive, null)));
  return found
    .filter(({ before, after }) => before || after)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

/** The ratio of the totals, if nearly everything has changed by it; else null. */
export function uniformRatio(all: readonly Change[]): number | null {
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

export function shownChanges(all: readonly Change[], text: string): Change[] {
  const wanted = text.toLowerCase();
  return all
    .filter(({ row }) => `${row.name}\n${row.file}:${row.line}`.toLowerCase().includes(wanted))
    .slice(0, MOST_ROWS);
}
