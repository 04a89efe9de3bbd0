// How the single measurements of a metric are distributed, for each of some groups.

import type { Calls } from "../api_types";
import type { Rows } from "./profile";
import type { Numbers } from "./tree";

export class Spreads {
  private constructor(
    readonly count: Float64Array,
    readonly total: Float64Array,
    readonly m2: Float64Array | null,
    readonly minimum: Float64Array | null,
    readonly maximum: Float64Array | null,
  ) {}

  /** Combine the rows of each group; `group` is each row's, -1 for none. */
  static of(rows: Rows, group: Int32Array, groups: number): Spreads {
    const chosen: number[] = [];
    const count = new Float64Array(groups);
    const total = new Float64Array(groups);
    for (let row = 0; row < group.length; row++) {
      const at = group[row];
      if (at < 0) continue;
      chosen.push(row);
      count[at] += rows.count[row];
      total[at] += rows.total[row];
    }
    const extremes = (values: Numbers, start: number, better: typeof Math.min) => {
      const result = new Float64Array(groups).fill(start);
      for (const row of chosen) result[group[row]] = better(result[group[row]], values[row]);
      return result;
    };
    return new Spreads(
      count,
      total,
      rows.m2 && variances(rows, rows.m2, chosen, group, count, total),
      rows.minimum && extremes(rows.minimum, Number.MAX_VALUE, Math.min),
      rows.maximum && extremes(rows.maximum, -Number.MAX_VALUE, Math.max),
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
  m2: Numbers,
  chosen: readonly number[],
  group: Int32Array,
  count: Float64Array,
  total: Float64Array,
): Float64Array {
  const result = new Float64Array(count.length);
  for (const row of chosen) {
    const at = group[row];
    const calls = rows.count[row];
    const away = rows.total[row] / Math.max(calls, 1) - total[at] / Math.max(count[at], 1);
    result[at] += m2[row] + calls * (away * away);
  }
  return result;
}
