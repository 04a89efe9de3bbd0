// Where answers come from: the engine, which reads columns, and what Python wrote besides columns.

import type {
  AboutAnswer,
  FindingsAnswer,
  ProfileAnswer,
  RanksAnswer,
  RooflineAnswer,
  SectionAnswer,
  SourceText,
  StepAnswer,
  TimeLineAnswer,
} from "./api_types";
import type {
  FilesAnswer,
  FindAnswer,
  FlameAnswer,
  NodeAnswer,
  SourceAnswer,
  TableAnswer,
} from "./engine/answers";
import type { Container } from "./engine/container";
import { Engine } from "./engine/engine";
import { Kept } from "./engine/kept";
import { treeOptions } from "./engine/options";
import { Profile } from "./engine/profile";
import type { TopDown } from "./engine/top_down";
import { warmUp } from "./engine/warm_up";
import { type Query, spelling } from "./model/question";
import { fileReader, type Reader, serverReader } from "./reader";
import { Refusal } from "./refusal";

export { Refusal };

/** What the engine computes. */
export interface Computed {
  flame: FlameAnswer;
  node: NodeAnswer;
  functions: TableAnswer;
  find: FindAnswer;
  table: TableAnswer;
  files: FilesAnswer;
  source: SourceAnswer;
}

/** What Python wrote. */
export interface Written {
  about: AboutAnswer;
  profile: ProfileAnswer;
  findings: FindingsAnswer;
  roofline: RooflineAnswer;
  section: SectionAnswer;
  text: SourceText;
  timeline: TimeLineAnswer;
  step: StepAnswer;
}

export type Answers = Computed & Written;
export type What = keyof Answers;

const ANSWERS_KEPT = 64;
const PROFILES_KEPT = 16;
const LEAST_IDLE_MS = 8;

/** Questions are answered here; what was read last is kept. */
export class Source {
  private readonly engine = new Engine();
  private isWarm = false;
  private readonly profiles = new Kept<Promise<Profile>>(PROFILES_KEPT);
  private readonly written = new Kept<Promise<unknown>>(ANSWERS_KEPT);

  constructor(private readonly reader: Reader) {}

  async ask<W extends What>(what: W, query: Query): Promise<Answers[W]> {
    return (await (Engine.computes(what)
      ? this.compute(what, query)
      : this.read(what, query))) as Answers[W];
  }

  /** The tree that a question is about. */
  async view(query: Query): Promise<TopDown> {
    const profile = await this.profile(query.file || "0");
    return this.engine.view(profile, treeOptions(query, profile.facts));
  }

  /** What is known of the ranks of a merged profile. */
  ranks(file: string): Promise<Container<RanksAnswer>> {
    const make = () => this.reader.container<RanksAnswer>("ranks", file);
    return once(this.written, `ranks ${file}`, make) as Promise<Container<RanksAnswer>>;
  }

  private async compute(what: keyof Computed, query: Query): Promise<unknown> {
    const files =
      query.kind === "difference" ? (query.files || "0,1").split(",") : [query.file || "0"];
    const profiles = await Promise.all(files.map((file) => this.profile(file)));
    const named = profiles[0].facts.files[query.path];
    const text =
      what === "source" && named
        ? await this.read("text", { file: query.file, path: query.path })
        : null;
    const start = performance.now();
    const answer = this.engine.answer(what, query, profiles, text as SourceText | null);
    performance.measure(what, { start });
    if (!this.isWarm) whileIdle(warmUp(profiles[0]));
    this.isWarm = true;
    return answer;
  }

  private profile(file: string): Promise<Profile> {
    return once(
      this.profiles,
      file,
      async () => new Profile(await this.reader.container("columns", file), file),
    );
  }

  private read(what: keyof Written, query: Query): Promise<unknown> {
    return once(this.written, spelling(what, query), () => this.reader.answer(what, query));
  }
}

/** Take steps while the page has nothing else to do, and none where the browser does not say when. */
function whileIdle(steps: Iterator<void>): void {
  globalThis.requestIdleCallback?.((deadline) => {
    do {
      if (steps.next().done) {
        performance.mark("warm");
        return;
      }
    } while (deadline.timeRemaining() > LEAST_IDLE_MS);
    whileIdle(steps);
  });
}

/** What failed is asked for again. */
function once<Value>(kept: Kept<Promise<Value>>, key: string, make: () => Promise<Value>) {
  const asked = kept.get(key, make);
  asked.catch(() => kept.drop(key));
  return asked;
}

/** Return the source that this page was made for: its own file, or the server that sent it. */
export function openSource(): Source {
  const embedded = document.getElementById("deepcontext-data")?.textContent;
  return new Source(embedded ? fileReader(embedded.split("\n")) : serverReader());
}
