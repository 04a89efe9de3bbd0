// Answers the page's questions about trees, tables and lines, from columns.

import type { Computed } from "../api";
import type { RanksAnswer, SourceText } from "../api_types";
import type { Query } from "../model/question";
import { rankValues, spreadColumns } from "./by_rank";
import { changes } from "./changes";
import type { Container } from "./container";
import { Difference } from "./difference";
import { flame, functionOf, type Trees } from "./flame";
import { functionRows } from "./function_rows";
import { Kept } from "./kept";
import { found, nodeAnswer } from "./node";
import {
  ALL_PHASES,
  DEFAULT_METRIC,
  refuse,
  shapeOf,
  type TreeOptions,
  treeOptions,
  wholeNumber,
} from "./options";
import type { Profile } from "./profile";
import { filesAnswer, type LineCosts, lineCosts, sourceAnswer } from "./source";
import { checkIsTotal, type GroupTable, groupTable, PYTHON_LINES, tableAnswer } from "./tables";
import { TopDown } from "./top_down";

const TREES_KEPT = 12;
const COMPUTED: readonly string[] = [
  ...[
    "flame",
    "node",
    "functions",
    "find",
    "table",
    "changes",
    "files",
    "source",
    "rank_values",
    "opened",
  ],
];

/** What a question is about besides profiles: the text of a file, the ranks of a merged profile. */
interface Besides {
  readonly text: SourceText | null;
  readonly ranks: Container<RanksAnswer> | null;
}

export class Engine {
  readonly #views = new Kept<TopDown>(TREES_KEPT);
  readonly #differences = new Kept<Difference>(2);
  readonly #tables = new Kept<GroupTable>(TREES_KEPT);
  readonly #lines = new Kept<LineCosts>(8);

  static computes(what: string): what is keyof Computed {
    return COMPUTED.includes(what);
  }

  /** Answer about the first profile, or about all compared with it. */
  answer(
    what: keyof Computed,
    query: Query,
    profiles: readonly Profile[],
    { text, ranks }: Besides,
  ): Computed[keyof Computed] {
    const [profile] = profiles;
    const measure = query.metric || DEFAULT_METRIC;
    const unit = unitOf(profile, measure);
    switch (what) {
      case "opened":
        return true;
      case "flame": {
        const options = treeOptions(query, profile.facts);
        const answer = flame(this.#trees(profiles, options, measure), query);
        if (!ranks) return answer;
        const spread = spreadColumns(this.#view(profile, options), ranks, measure, answer.nodes);
        return { ...answer, nodes: { ...answer.nodes, ...spread } };
      }
      case "rank_values": {
        const view = this.#view(profile, treeOptions(query, profile.facts));
        return rankValues(view, ranks, measure, wholeNumber(query, "source", 0));
      }
      case "node": {
        const view = this.#view(profile, treeOptions(query, profile.facts));
        const values = profile.values(measure);
        if (!query.function) {
          return nodeAnswer(view, values, [view.nodeOf(wholeNumber(query, "source", 0))]);
        }
        const func = functionOf(view, wholeNumber(query, "function", 0));
        return nodeAnswer(view, values, view.tree.all(func));
      }
      case "functions": {
        const view = this.#view(profile, treeOptions(query, profile.facts));
        return tableAnswer(profile, functionRows(view, profile.values(measure)), unit, query);
      }
      case "find": {
        const view = this.#view(profile, treeOptions(query, profile.facts));
        return found(view, profile.values(measure), query.text ?? "");
      }
      case "table": {
        const table = this.#table(profile, query.by || "operator", measure);
        return tableAnswer(profile, table, unit, query);
      }
      case "changes": {
        const of = (each: Profile) => this.#table(each, query.by || "operator", measure);
        return changes(profiles, of, unit, query.text ?? "");
      }
      case "files":
        return filesAnswer(profile, this.#lineCosts(profile, measure), unit);
      case "source":
        return sourceAnswer(profile, this.#lineCosts(profile, measure), unit, query.path, text);
    }
  }

  #trees(profiles: readonly Profile[], options: TreeOptions, measure: string): Trees {
    const [profile] = profiles;
    return {
      view: () => this.#view(profile, options),
      focused: (edit) => this.#view(profile, { ...options, edits: [...options.edits, edit] }),
      difference: () => this.#difference(profiles, options),
      values: (view) => {
        unitOf(view.profile, measure);
        return view.profile.values(measure);
      },
      unit: (view) => unitOf(view.profile, measure),
    };
  }

  #view(profile: Profile, options: TreeOptions): TopDown {
    const make = () => TopDown.of(profile, { ...options, phase: ALL_PHASES });
    const view = this.#views.get(`${profile.name} ${shapeOf(options)}`, make);
    return options.phase === ALL_PHASES ? view : view.counting(options.phase);
  }

  #difference(profiles: readonly Profile[], options: TreeOptions): Difference {
    const names = profiles.map(({ name }) => name);
    return this.#differences.get(`${names} ${shapeOf(options)} ${options.phase}`, () =>
      Difference.of(profiles.map((profile) => this.#view(profile, options))),
    );
  }

  #table(profile: Profile, by: string, measure: string): GroupTable {
    const make = () => groupTable(profile, by, measure);
    return this.#tables.get(`${profile.name} ${by} ${measure}`, make);
  }

  #lineCosts(profile: Profile, measure: string): LineCosts {
    checkIsTotal(profile, measure, "lines");
    return this.#lines.get(`${profile.name} ${measure}`, () =>
      lineCosts(
        profile,
        this.#table(profile, "line", measure),
        this.#table(profile, PYTHON_LINES, measure),
      ),
    );
  }
}

function unitOf(profile: Profile, measure: string): string {
  const known = profile.facts.measures.find((each) => each.key === measure);
  const names = () => profile.facts.measures.map((each) => each.key).join(", ") || "none";
  return known?.unit ?? refuse(`this profile has no measure '${measure}'; it has: ${names()}`);
}
