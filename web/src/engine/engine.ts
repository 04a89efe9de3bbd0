// Answers the page's questions from columns; everything that is not about trees was written by Python.

import type { Answers, What } from "../api";
import type { ErrorAnswer } from "../api_types";
import type { Query } from "../model/question";
import { spelling } from "../model/question";
import type { Container } from "./container";
import { Difference } from "./difference";
import { flame, type Trees } from "./flame";
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
import { Profile, type ProfileFacts } from "./profile";
import { filesAnswer, type LineCosts, lineCosts, sourceAnswer } from "./source";
import { checkIsTotal, type GroupTable, groupTable, PYTHON_LINES, tableAnswer } from "./tables";
import { TopDown } from "./top_down";

/** The header of the page's data: facts of each profile, and answers by their spelling. */
export interface PageHeader {
  readonly profiles: readonly ProfileFacts[];
  readonly answers: Readonly<Record<string, unknown>>;
}

const TREES_KEPT = 12;
const COMPUTED: readonly string[] = ["flame", "node", "find", "table", "files", "source"];

export class Engine {
  private readonly profiles: (Profile | null)[];
  private readonly views = new Kept<TopDown>(TREES_KEPT);
  private readonly differences = new Kept<Difference>(2);
  private readonly tables = new Kept<GroupTable>(TREES_KEPT);
  private readonly lines = new Kept<LineCosts>(4);

  constructor(private readonly container: Container<PageHeader>) {
    this.profiles = container.header.profiles.map(() => null);
  }

  answer<W extends What>(what: W, query: Query): Answers[W] {
    return (
      COMPUTED.includes(what) ? this.computed(what, query) : this.recorded(what, query)
    ) as Answers[W];
  }

  private recorded(what: What, query: Query): unknown {
    const answer = this.container.header.answers[spelling(what, query)];
    if (!answer) refuse("this is not in the file; open the profile itself with 'deepcontext view'");
    if (isError(answer)) refuse(answer.error);
    return answer;
  }

  private computed(what: What, query: Query): unknown {
    const file = wholeNumber(query, "file", 0);
    const profile = this.profile(file);
    const measure = query.metric || DEFAULT_METRIC;
    const unit = unitOf(profile, measure);
    switch (what) {
      case "flame":
        return flame(this.trees(file, treeOptions(query, profile.facts), measure), query);
      case "node": {
        const view = this.view(file, treeOptions(query, profile.facts));
        return nodeAnswer(view, profile.values(measure), wholeNumber(query, "source", 0));
      }
      case "find": {
        const view = this.view(file, treeOptions(query, profile.facts));
        return found(view, profile.values(measure), query.text ?? "");
      }
      case "table": {
        const table = this.table(file, query.by || "operator", measure);
        return tableAnswer(profile, table, unit, query.text ?? "");
      }
      case "files":
        return filesAnswer(profile, this.lineCosts(file, measure), unit);
      default:
        return sourceAnswer(profile, this.lineCosts(file, measure), unit, query.path ?? "");
    }
  }

  private trees(file: number, options: TreeOptions, measure: string): Trees {
    return {
      view: () => this.view(file, options),
      focused: (edit) => this.view(file, { ...options, edits: [...options.edits, edit] }),
      difference: () => this.difference(options),
      values: (view) => {
        unitOf(view.profile, measure);
        return view.profile.values(measure);
      },
      unit: (view) => unitOf(view.profile, measure),
    };
  }

  private profile(file: number): Profile {
    const facts = this.container.header.profiles[file];
    if (!facts) refuse(`no profile ${file}: ${this.profiles.length} are open, counted from 0`);
    const known = this.profiles[file] ?? new Profile(facts, this.container, `${file}/`);
    this.profiles[file] = known;
    return known;
  }

  private view(file: number, options: TreeOptions): TopDown {
    const shape = `${file} ${shapeOf(options)}`;
    const make = () => TopDown.of(this.profile(file), { ...options, phase: ALL_PHASES });
    const view = this.views.get(shape, make);
    return options.phase === ALL_PHASES ? view : view.counting(options.phase);
  }

  private difference(options: TreeOptions): Difference {
    if (this.profiles.length < 2) {
      refuse("a difference needs two profiles: deepcontext view A.dcprof B.dcprof");
    }
    return this.differences.get(`${shapeOf(options)} ${options.phase}`, () =>
      Difference.of(this.view(0, options), this.view(1, options)),
    );
  }

  private table(file: number, by: string, measure: string): GroupTable {
    const make = () => groupTable(this.profile(file), by, measure);
    return this.tables.get(`${file} ${by} ${measure}`, make);
  }

  private lineCosts(file: number, measure: string): LineCosts {
    checkIsTotal(this.profile(file), measure, "lines");
    return this.lines.get(`${file} ${measure}`, () =>
      lineCosts(
        this.profile(file),
        this.table(file, "line", measure),
        this.table(file, PYTHON_LINES, measure),
      ),
    );
  }
}

function isError(answer: unknown): answer is ErrorAnswer {
  return typeof answer === "object" && answer !== null && "error" in answer;
}

function unitOf(profile: Profile, measure: string): string {
  const known = profile.facts.measures.find((each) => each.key === measure);
  const names = () => profile.facts.measures.map((each) => each.key).join(", ") || "none";
  return known?.unit ?? refuse(`this profile has no measure '${measure}'; it has: ${names()}`);
}
