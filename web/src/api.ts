// Asks the engine's thread (`engine/thread.ts`), which has all data: the page's own thread only draws.

import type {
  AboutAnswer,
  AccountAnswer,
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
  ChangesAnswer,
  FilesAnswer,
  FindAnswer,
  FlameAnswer,
  NodeAnswer,
  RankValues,
  SourceAnswer,
  TableAnswer,
} from "./engine/answers";
import type { Port, Received, Sent } from "./engine/thread";
import type { Query } from "./model/question";
import { Refusal } from "./refusal";

export { Refusal };

/** What the engine computes. */
export interface Computed {
  /** Nothing: the columns of a profile are asked for soon. */
  opened: boolean;
  flame: FlameAnswer;
  node: NodeAnswer;
  functions: TableAnswer;
  find: FindAnswer;
  table: TableAnswer;
  changes: ChangesAnswer;
  files: FilesAnswer;
  source: SourceAnswer;
  rank_values: RankValues;
}

/** What Python wrote. */
export interface Written {
  about: AboutAnswer;
  profile: ProfileAnswer;
  /** The version of a profile; refused if its file has changed. */
  current: string;
  account: AccountAnswer;
  findings: FindingsAnswer;
  ranks: RanksAnswer;
  roofline: RooflineAnswer;
  section: SectionAnswer;
  text: SourceText;
  timeline: TimeLineAnswer;
  step: StepAnswer;
}

export type Answers = Computed & Written;
export type What = keyof Answers;

interface Thread {
  onmessage: ((event: MessageEvent<Received>) => void) | null;
  postMessage(sent: Sent): void;
}

interface Waiting {
  readonly sent: Sent;
  settle(received: Received): void;
}

/** Sends questions, and gives each answer to who asked for it. */
export class Source {
  readonly #waiting = new Map<number, Waiting>();
  #thread: Thread | null = null;
  #last = 0;

  /** `data`: that of the page's own file, "" for a page of a server. */
  constructor(readonly data: string) {}

  connect(thread: Thread): void {
    this.#thread = thread;
    thread.onmessage = ({ data }) => this.#waiting.get(data.id)?.settle(data);
    thread.postMessage(this.data);
    for (const { sent } of this.#waiting.values()) thread.postMessage(sent);
  }

  /** Return the answer; a question that is dropped is never answered. */
  ask<W extends What>(what: W, query: Query, dropped?: AbortSignal): Promise<Answers[W]> {
    this.#last += 1;
    const id = this.#last;
    const sent = { id, what, query };
    const start = performance.now();
    this.#thread?.postMessage(sent);
    return new Promise((resolve, reject) => {
      dropped?.addEventListener("abort", () => {
        if (this.#waiting.delete(id)) this.#thread?.postMessage(id);
      });
      const settle = ({ answer, error, status = -1 }: Received) => {
        this.#waiting.delete(id);
        performance.measure(what, { start });
        if (error === undefined) resolve(answer as Answers[W]);
        else reject(status < 0 ? new Error(error) : new Refusal(error, status));
      };
      this.#waiting.set(id, { sent, settle });
    });
  }
}

/** Return the source of this page: its own file, or the server that sent it. */
export function openSource(): Source {
  const part = (name: string) => document.getElementById(`deepcontext-${name}`)?.textContent;
  const code = part("engine");
  const source = new Source(part("data") ?? "");
  try {
    const blob = code && URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    const worker = new Worker(blob || SCRIPT);
    worker.onerror = () => withoutThread(source, code);
    source.connect(worker);
  } catch {
    withoutThread(source, code);
  }
  return source;
}

const SCRIPT = "static/engine.js";

/** Answer on the page's own thread, where a browser starts no other. */
function withoutThread(source: Source, code: string | null | undefined): void {
  const script = document.createElement("script");
  const begin = () => {
    const { port1, port2 } = new MessageChannel();
    (globalThis as unknown as { deepcontextEngine: (port: Port) => void }).deepcontextEngine(port2);
    source.connect(port1);
  };
  if (code) script.textContent = code;
  else {
    script.src = SCRIPT;
    script.onload = begin;
  }
  document.head.append(script);
  if (code) begin();
}
