// What the engine's thread does: answers questions one after the other, and drops those whose answer nobody waits
// for any more.

import { Refusal } from "../refusal";
import { Answering, type Asked } from "./answering";
import { fileReader, serverReader } from "./reader";

/** What the page sends: the data of its file, "" for that of its server; a question; or its number, to drop it. */
export type Sent = string | Asked | number;

/** What the page receives: an answer, or why there is none. */
export interface Received {
  readonly id: number;
  readonly answer?: unknown;
  readonly error?: string;
  readonly status?: number;
}

export interface Port {
  onmessage: ((event: MessageEvent<Sent>) => void) | null;
  postMessage(received: Received): void;
}

export function answerOn(port: Port): void {
  const waiting = new Set<number>();
  let answering: Answering;
  port.onmessage = async ({ data }) => {
    if (typeof data === "string") {
      const reader = data ? fileReader(data.split("\n")) : serverReader();
      answering = new Answering(reader, turns());
    } else if (typeof data === "number") waiting.delete(data);
    else {
      const { id } = data;
      waiting.add(id);
      const found = await answering
        .ask(data, () => waiting.has(id))
        .then(
          (answer) => ({ id, answer }),
          (error: Error) => ({
            ...{ id, error: error.message },
            status: error instanceof Refusal ? error.status : -1,
          }),
        );
      if (waiting.delete(id)) port.postMessage(found);
    }
  };
}

/** Return what waits until all messages that have arrived by now are read. */
function turns(): () => Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      port2.postMessage(null);
    });
}
