// Where answers come from: the server this page was loaded from, or the file itself.

import type {
  AboutAnswer,
  ErrorAnswer,
  FilesAnswer,
  FindAnswer,
  FindingsAnswer,
  FlameAnswer,
  NodeAnswer,
  SectionAnswer,
  SourceAnswer,
  TableAnswer,
} from "./api_types";
import { type Query, spelling } from "./model/question";

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
}

export type What = keyof Answers;

/** A question that was not answered, and why. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Questions are answered here; `live` says whether any question can be. */
export interface Source {
  readonly live: boolean;
  has(what: What, query: Query): boolean;
  ask<W extends What>(what: W, query: Query, signal?: AbortSignal): Promise<Answers[W]>;
}

const KEPT = 64;

/** Ask the server that sent the page; answers asked for last are kept. */
export function serverSource(): Source {
  const kept = new Map<string, unknown>();
  return {
    live: true,
    has: () => true,
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

/** Answer from what was recorded in the page's file, by the questions' spelling. */
export function fileSource(recorded: Record<string, unknown>): Source {
  const key = (what: What, query: Query) => {
    const { px: _, ...rest } = query;
    return spelling(what, rest);
  };
  return {
    live: false,
    has: (what, query) => key(what, query) in recorded,
    async ask<W extends What>(what: W, query: Query) {
      const answer = recorded[key(what, query)];
      if (answer === undefined) {
        throw new Refusal(
          "this is not in the file; open the profile itself with 'deepcontext view'",
          404,
        );
      }
      return answer as Answers[W];
    },
  };
}

/** Return the source this page was made for. */
export async function openSource(): Promise<Source> {
  const embedded = document.getElementById("deepcontext-answers");
  if (!embedded) return serverSource();
  const packed = Uint8Array.from(atob(embedded.textContent ?? ""), (each) => each.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return fileSource((await new Response(plain).json()) as Record<string, unknown>);
}
