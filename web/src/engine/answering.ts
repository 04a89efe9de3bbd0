// Where answers come from: the engine, which reads columns, and what Python wrote besides columns.

import type { What, Written } from "../api";
import type { RanksAnswer, SourceText } from "../api_types";
import { type Query, spelling } from "../model/question";
import type { Container } from "./container";
import { Engine } from "./engine";
import { Kept } from "./kept";
import { Profile } from "./profile";
import type { Reader } from "./reader";

export interface Asked {
  readonly id: number;
  readonly what: What;
  readonly query: Query;
}

const ANSWERS_KEPT = 64;
const PROFILES_KEPT = 16;

/** Questions are answered here; what was read last is kept. */
export class Answering {
  readonly #engine = new Engine();
  readonly #profiles = new Kept<Promise<Profile>>(PROFILES_KEPT);
  readonly #written = new Kept<Promise<unknown>>(ANSWERS_KEPT);

  constructor(
    private readonly reader: Reader,
    /** Waits until it is known whether an answer is still wanted. */
    private readonly turn: () => Promise<void>,
  ) {}

  async ask({ what, query }: Omit<Asked, "id">, isWanted = () => true): Promise<unknown> {
    if (what === "ranks") return (await this.#ranks(query)).header;
    if (!Engine.computes(what)) return this.#read(what, query);
    const several = query.kind === "difference" ? "0,1" : "";
    const files = (query.files || several || query.file || "0").split(",");
    const profiles = await Promise.all(files.map((file) => this.#profile(file)));
    const named = profiles[0].facts.files[query.path];
    const text =
      what === "source" && named
        ? await this.#read("text", { file: query.file, path: query.path })
        : null;
    const ranks = query.ranks ? await this.#ranks(query) : null;
    await this.turn();
    if (!isWanted()) return null;
    return this.#engine.answer(what, query, profiles, { text: text as SourceText | null, ranks });
  }

  #profile(file: string): Promise<Profile> {
    return once(
      this.#profiles,
      file,
      async () => new Profile(await this.reader.container("columns", file), file),
    );
  }

  /** What is known of the ranks of a merged profile. */
  #ranks({ file }: Query): Promise<Container<RanksAnswer>> {
    const make = () => this.reader.container<RanksAnswer>("ranks", file || "0");
    return once(this.#written, `ranks ${file}`, make) as Promise<Container<RanksAnswer>>;
  }

  #read(what: keyof Written, query: Query): Promise<unknown> {
    if (what === "current") return this.reader.answer(what, query);
    return once(this.#written, spelling(what, query), () => this.reader.answer(what, query));
  }
}

/** What failed is asked for again. */
function once<Value>(kept: Kept<Promise<Value>>, key: string, make: () => Promise<Value>) {
  const asked = kept.get(key, make);
  asked.catch(() => kept.drop(key));
  return asked;
}
