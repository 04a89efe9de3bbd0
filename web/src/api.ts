// Where answers come from: the server this page was loaded from, or the file itself.

import type {
  AboutAnswer,
  ErrorAnswer,
  FilesAnswer,
  FindAnswer,
  FindingsAnswer,
  FlameAnswer,
  NodeAnswer,
  ProfileAnswer,
  SectionAnswer,
  SourceAnswer,
  TableAnswer,
} from "./api_types";
import { Container } from "./engine/container";
import { Engine } from "./engine/engine";
import { type Query, spelling } from "./model/question";
import { Refusal } from "./refusal";

export { Refusal };

export interface Answers {
  about: AboutAnswer;
  flame: FlameAnswer;
  node: NodeAnswer;
  find: FindAnswer;
  table: TableAnswer;
  files: FilesAnswer;
  source: SourceAnswer;
  findings: FindingsAnswer;
  section: SectionAnswer;
  profile: ProfileAnswer;
}

export type What = keyof Answers;

/** Questions are answered here. */
export interface Source {
  ask<W extends What>(what: W, query: Query, signal?: AbortSignal): Promise<Answers[W]>;
}

const KEPT = 64;

/** Ask the server that sent the page; answers asked for last are kept. */
export function serverSource(): Source {
  const kept = new Map<string, unknown>();
  return {
    async ask<W extends What>(what: W, query: Query, signal?: AbortSignal) {
      const address = spelling(what, query);
      const known = kept.get(address);
      if (known !== undefined && what !== "about") return known as Answers[W];
      const answer = await fetchJson(`api/${address}`, signal);
      kept.set(address, answer);
      for (const oldest of kept.keys()) {
        if (kept.size <= KEPT) break;
        kept.delete(oldest);
      }
      return answer as Answers[W];
    },
  };
}

async function fetchJson(address: string, signal?: AbortSignal): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(address, signal ? { signal } : {});
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(
      "the server does not answer; is 'deepcontext view' still running in its terminal?",
      0,
    );
  }
  const content: unknown = await response.json();
  if (!response.ok) throw new Refusal((content as ErrorAnswer).error, response.status);
  return content;
}

/** Answer from the columns in the page's file. */
export function fileSource(engine: Engine): Source {
  return {
    async ask(what, query) {
      return engine.answer(what, query);
    },
  };
}

/** Return the source this page was made for. */
export async function openSource(): Promise<Source> {
  const embedded = document.getElementById("deepcontext-data");
  if (!embedded) return serverSource();
  const packed = Uint8Array.from(atob(embedded.textContent ?? ""), (each) => each.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(plain).arrayBuffer());
  return fileSource(new Engine(Container.read(bytes)));
}
