// One profile as columns, and the facts about frames that Python wrote.

import type { FusedKernel, Measure } from "../api_types";
import type { Column } from "./container";
import { type Numbers, Tree } from "./tree";

/** A metric that cannot be summed. */
export interface OtherMetric {
  readonly name: string;
  readonly label: string;
  readonly unit: string;
  readonly description: string;
  readonly maximum: boolean;
}

/** One way to group frames into the rows of a table. */
export interface TableFacts {
  readonly layer: string;
  readonly largest: "inclusive" | "exclusive";
  readonly only_with_value: boolean;
  readonly is_line: boolean;
}

/** A source file that the profile names. */
export interface NamedFile {
  readonly shown: string;
  readonly library: boolean;
}

export interface ProfileFacts {
  readonly strings: readonly string[];
  readonly cwd: string;
  /** Number of steps that values are sums of; 1 where they are shown as they are. */
  readonly steps: number;
  readonly kinds: readonly string[];
  readonly layers: readonly string[];
  readonly optional_layers: readonly string[];
  readonly layer_of_kind: readonly number[];
  readonly phases: readonly string[];
  readonly shown_phase: readonly number[];
  readonly listed_phases: readonly number[];
  readonly measures: readonly Measure[];
  readonly totals: readonly string[];
  readonly other: readonly OtherMetric[];
  readonly tables: Readonly<Record<string, TableFacts>>;
  readonly fused: readonly FusedKernel[];
  readonly files: Readonly<Record<string, NamedFile>>;
}

/** The rows of one metric: row i belongs to node `node[i]`. */
export interface Rows {
  readonly node: Numbers;
  readonly count: Numbers;
  readonly total: Numbers;
  readonly minimum: Numbers | null;
  readonly maximum: Numbers | null;
  readonly m2: Numbers | null;
}

export interface Frames {
  readonly kind: Numbers;
  readonly name: Numbers;
  readonly file: Numbers;
  readonly line: Numbers;
  readonly user: Numbers;
}

/** Where columns are found by name. */
export interface Columns {
  readonly header: { readonly facts: ProfileFacts };
  has(name: string): boolean;
  array(name: string): Column;
}

export class Profile {
  readonly tree: Tree;
  /** Phase of each node, and the phase that it counts under. */
  readonly phase: Numbers;
  readonly shownPhase: Uint8Array;
  readonly frames: Frames;
  readonly #kept = new Map<string, Column>();

  readonly facts: ProfileFacts;

  constructor(
    private readonly columns: Columns,
    /** Tells profiles apart. */
    readonly name: string,
  ) {
    const { facts } = columns.header;
    this.facts = facts;
    this.tree = Tree.fromDepth(this.#held("depth"), this.#held("frame"));
    this.phase = this.#held("phase");
    // Loops, because `from` with a function walks an iterator: ten times as long for a million nodes.
    this.shownPhase = new Uint8Array(this.phase.length);
    for (let node = 0; node < this.phase.length; node++) {
      this.shownPhase[node] = facts.shown_phase[this.phase[node]];
    }
    this.frames = {
      kind: this.#held("frame_kind"),
      name: this.#held("frame_name"),
      file: this.#held("frame_file"),
      line: this.#held("frame_line"),
      user: this.#held("frame_user"),
    };
  }

  get nodes(): number {
    return this.tree.length;
  }

  text(string: number): string {
    return this.facts.strings[string];
  }

  /** Exclusive value of each node under a measure. */
  values(measure: string): Numbers {
    const index = this.facts.measures.findIndex((each) => each.key === measure);
    return this.#aStep(`measure_${index}`);
  }

  /** The rows of a metric, null where the profile has none. */
  rows(metric: string): Rows | null {
    const name = (column: string) => `rows_${metric}_${column}`;
    if (!this.columns.has(name("node"))) return null;
    const summed = !this.facts.other.some((each) => each.name === metric);
    const optional = (column: string) =>
      this.columns.has(name(column)) ? this.#held(name(column)) : null;
    return {
      node: this.#held(name("node")),
      count: summed ? this.#aStep(name("count")) : this.#held(name("count")),
      total: summed ? this.#aStep(name("total")) : this.#held(name("total")),
      minimum: optional("minimum"),
      maximum: optional("maximum"),
      m2: optional("m2"),
    };
  }

  /** The group of each frame in a table, -1 for none, and a frame of each group. */
  groups(table: string): { ofFrame: Int32Array; example: Numbers } {
    // 0 stands for "none", because columns hold no negative numbers.
    const ofFrame = Int32Array.from(this.#held(`table_${table}_group`), (group) => group - 1);
    return { ofFrame, example: this.#held(`table_${table}_example`) };
  }

  /** The fused kernel of nodes that are one: nodes, and indices into `facts.fused`. */
  fused(): { node: Numbers; kernel: Numbers } {
    return { node: this.#held("fused_node"), kernel: this.#held("fused_kernel") };
  }

  /** A column divided by the steps, in parts of 1/1024, which add up without an error. */
  #aStep(name: string): Column {
    const { steps } = this.facts;
    if (!(steps > 1)) return this.#held(name);
    const known = this.#kept.get(`${name} a step`);
    if (known) return known;
    const sums = this.#held(name);
    const column = new Float64Array(sums.length);
    for (let row = 0; row < sums.length; row++) {
      column[row] = Math.round((sums[row] * 1024) / steps) / 1024;
    }
    this.#kept.set(`${name} a step`, column);
    return column;
  }

  #held(name: string): Column {
    const known = this.#kept.get(name);
    if (known) return known;
    const column = this.columns.array(name);
    this.#kept.set(name, column);
    return column;
  }
}
