// What each rank spent at the nodes of a tree.
//
// Python wrote what each rank spent at the largest paths, without those of these paths that lie below, and
// the largest value at every path.

import type { RanksAnswer } from "../api_types";
import type { NodeColumns, RankValues } from "./answers";
import type { Container } from "./container";
import { ALL_PHASES } from "./options";
import { NOT_RECORDED } from "./rounding";
import type { TopDown } from "./top_down";

type Ranks = Container<RanksAnswer>;
/** What a node costs on all ranks, and on the one where it costs most. */
interface Spread {
  readonly mean: number;
  readonly most: number;
  readonly mostRank: number;
}
type Charge = (node: number, value: number) => void;

/** How far the sum over the ranks may be from a node's cost: the rest lies at smaller paths. */
const TOLERANCE = 0.1;
const LEAST_CODE = 1;
const CODES = 65_536;

/** What a node costs on each rank, in all threads. */
export function rankValues(
  view: TopDown,
  ranks: Ranks | null,
  measure: string,
  source: number,
): RankValues {
  const node = view.nodeOf(source % view.profile.nodes);
  const values = ranks && ByRank.of(view, ranks, measure)?.at(node);
  const { names = [] } = ranks?.header ?? {};
  return { names, values: values ? [...values] : null, why: whyUnknown(view, ranks, measure) };
}

function whyUnknown(view: TopDown, ranks: Ranks | null, measure: string): string {
  if (!ranks?.header.metrics.includes(measure)) {
    return "Values of single ranks are not kept for this measure.";
  }
  if (view.options.phase !== ALL_PHASES) {
    return "Values of single ranks are kept for all phases together.";
  }
  const paths = ranks.array("node").length;
  return `Values of single ranks are kept at the ${paths} largest call paths; this one is smaller.`;
}

/** How the cost of each node in an answer spreads over the ranks. */
export function spreadColumns(
  view: TopDown,
  ranks: Ranks,
  measure: string,
  { source }: NodeColumns,
): Pick<NodeColumns, "mean_of_ranks" | "most" | "most_rank"> {
  const all = ByRank.of(view, ranks, measure)?.spreads();
  const column = (name: keyof Spread) =>
    source.map((each) => all?.get(each)?.[name] ?? NOT_RECORDED);
  return { mean_of_ranks: column("mean"), most: column("most"), most_rank: column("mostRank") };
}

class ByRank {
  private constructor(
    private readonly view: TopDown,
    private readonly ranks: Ranks,
    private readonly measure: string,
    /** Calls a function with what a rank spent at each node of the profile. */
    private readonly each: (rank: number, charge: Charge) => void,
  ) {}

  /** Null where values of single ranks are not kept for a measure. */
  static of(view: TopDown, ranks: Ranks, measure: string): ByRank | null {
    const { names, metrics } = ranks.header;
    const index = metrics.indexOf(measure);
    if (index < 0 || view.options.phase !== ALL_PHASES) return null;
    const { node, values } = kept(ranks, index);
    return new ByRank(view, ranks, measure, (rank, charge) => {
      for (let row = 0; row < node.length; row++) {
        charge(node[row], values[row * names.length + rank]);
      }
    });
  }

  /** What a node of the view costs on each rank, null where it is too small to be kept. */
  at(node: number): Float64Array | null {
    const { view } = this;
    const end = view.tree.endOf(node);
    const sums = new Float64Array(this.ranks.header.names.length);
    for (let rank = 0; rank < sums.length; rank++) {
      this.each(rank, (source, value) => {
        const to = view.receiver(source);
        if (to >= node && to < end) sums[rank] += value;
      });
    }
    const { inclusive } = view.costs(view.marks([node]), view.profile.values(this.measure));
    const known = sums.reduce((sum, value) => sum + value, 0);
    return isKnown(known, inclusive * this.#means) ? sums : null;
  }

  /** The spread of every node of the view, by its source. */
  spreads(): Map<number, Spread> {
    const { view } = this;
    const { names } = this.ranks.header;
    const count = view.tree.length;
    const sum = new Float64Array(count);
    const most = new Float64Array(count);
    const mostRank = new Int32Array(count);
    for (let rank = 0; rank < names.length; rank++) {
      const own = new Float64Array(count);
      this.each(rank, (source, value) => {
        const to = view.receiver(source);
        if (to >= 0) own[to] += value;
      });
      const inclusive = view.tree.inclusive(own);
      for (let node = 0; node < count; node++) {
        sum[node] += inclusive[node];
        if (inclusive[node] <= most[node]) continue;
        most[node] = inclusive[node];
        mostRank[node] = names[rank].rank;
      }
    }
    const totals = view.tree.inclusive(view.exclusive(view.profile.values(this.measure)));
    const stored = this.#stored();
    const found = new Map<number, Spread>();
    for (let node = 0; node < count; node++) {
      const total = totals[node] * this.#means;
      const mean = total / names.length;
      const known = isKnown(sum[node], total)
        ? { most: Math.max(most[node], mean), mostRank: mostRank[node] }
        : stored(view.first[node], total);
      if (known && mean > 0) found.set(view.source(node), { mean, ...known });
    }
    return found;
  }

  /** Number of ranks that the value of a node is the mean of. */
  get #means(): number {
    return this.ranks.header.names.length / this.ranks.header.of_ranks;
  }

  /** The spread that Python wrote of a path, where the node has the cost of this path alone. */
  #stored(): (source: number, total: number) => Omit<Spread, "mean"> | null {
    const index = this.ranks.header.metrics.indexOf(this.measure);
    if (index < 0) return () => null;
    const column = (name: string) => this.ranks.array(`${index}.${name}`);
    const [total, most, mostRank] = ["total", "most", "most_rank"].map(column);
    const rows = new Map(Array.from(column("node"), (node, row) => [node, row]));
    return (source, value) => {
      const row = rows.get(source) ?? -1;
      return total[row] === value ? { most: most[row], mostRank: mostRank[row] } : null;
    };
  }
}

function isKnown(sum: number, total: number): boolean {
  return total > 0 && Math.abs(sum - total) <= TOLERANCE * total;
}

interface Kept {
  readonly node: ArrayLike<number>;
  /** Of each row the value of each rank. */
  readonly values: Float32Array;
}

const KEPT = new WeakMap<Ranks, Kept[]>();

/** The values of a metric at the largest paths; see `columns.encode` in Python. */
function kept(ranks: Ranks, index: number): Kept {
  const all = KEPT.get(ranks) ?? [];
  KEPT.set(ranks, all);
  all[index] ??= {
    node: ranks.array("node"),
    values: decoded(ranks.array(`${index}.codes`), ranks.header.step),
  };
  return all[index];
}

function decoded(codes: ArrayLike<number>, step: number): Float32Array {
  const value = new Float64Array(CODES);
  for (let code = LEAST_CODE; code < CODES; code++) value[code] = Math.exp((code - 1) * step);
  const values = new Float32Array(codes.length);
  for (let at = 0; at < values.length; at++) values[at] = value[codes[at]];
  return values;
}
