// How the single measurements of a metric are distributed, for each of some groups.

import type { Calls } from "../api_types";
import type { Rows } from "./profile";

export class Spreads {
  private constructor(
    readonly count: Float64Array,
    readonly total: Float64Array,
    readonly m2: Float64Array | null,
    readonly minimum: Float64Array | null,
    readonly maximum: Float64Array | null,
  ) {}

  /** Combine the rows of each group; `groupOf` gives a row's group, -1 for none. */
  static of(rows: Rows, groupOf: (row: number) => number, groups: number): Spreads {
    const size = rows.node.length;
    const group = new Int32Array(size);
    const count = new Float64Array(groups);
    const total = new Float64Array(groups);
    for (let row = 0; row < size; row++) {
      const at = groupOf(row);
      group[row] = at;
      if (at < 0) continue;
      count[at] += rows.count[row];
      total[at] += rows.total[row];
    }
    return new Spreads(
      count,
      total,
      rows.m2 && variances(rows, rows.m2, group, count, total),
      rows.minimum && extremes(rows.minimum, group, groups, Number.MAX_VALUE, Math.min),
      rows.maximum && extremes(rows.maximum, group, groups, -Number.MAX_VALUE, Math.max),
    );
  }

  deviation(index: number): number | null {
    const count = this.count[index];
    return this.m2 && count > 1 ? Math.sqrt(this.m2[index] / (count - 1)) : null;
  }

  /** The distribution of one group, null where nothing was measured. */
  spread(index: number): Calls | null {
    const count = this.count[index];
    if (count <= 0) return null;
    return {
      count,
      mean: this.total[index] / count,
      deviation: this.deviation(index),
      minimum: this.minimum?.[index] ?? null,
      maximum: this.maximum?.[index] ?? null,
    };
  }
}

// Source: Chan, Golub, LeVeque (1979), "Updating formulae and a pairwise algorithm for computing
// sample variances": variance within the rows plus between their means.
function variances(
  rows: Rows,
  m2: ArrayLike<number>,
  group: Int32Array,
  count: Float64Array,
  total: Float64Array,
): Float64Array {
  const result = new Float64Array(count.length);
  for (let row = 0; row < group.length; row++) {
    const at = group[row];
    if (at < 0) continue;
    const calls = rows.count[row];
    const away = rows.total[row] / Math.max(calls, 1) - total[at] / Math.max(count[at], 1);
    result[at] += m2[row] + calls * (away * away);
  }
  return result;
}

function extremes(
  values: ArrayLike<number>,
  group: Int32Array,
  groups: number,
  start: number,
  better: (a: number, b: number) => number,
): Float64Array {
  const result = new Float64Array(groups).fill(start);
  for (let row = 0; row < group.length; row++) {
    const at = group[row];
    if (at >= 0) result[at] = better(result[at], values[row]);
  }
  return result;
}
