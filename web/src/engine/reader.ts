// Reads what Python wrote: from the server that sent the page, or from the page's own file.

import type { ErrorAnswer } from "../api_types";
import { type Query, spelling } from "../model/question";
import { Refusal } from "../refusal";
import { Container } from "./container";
import { Kept } from "./kept";
import { refuse } from "./options";
import type { ProfileFacts } from "./profile";

/** The header of a profile's columns; in a file it also holds the answers that a server would give. */
export interface Header extends Readonly<Record<string, unknown>> {
  readonly facts: ProfileFacts;
}

const CONTAINERS_KEPT = 4;
/** As seen from the thread's script, or from the page. */
const API = "document" in globalThis ? "api" : "../api";

export interface Reader {
  answer(what: string, query: Query): Promise<unknown>;
  /** A profile's columns, or its ranks. */
  container<Kind>(what: "columns" | "ranks", file: string): Promise<Container<Kind>>;
}

export function serverReader(): Reader {
  return {
    async answer(what, query) {
      return (await fetched(spelling(what, query))).json();
    },
    async container(what, file) {
      const response = await fetched(`${what}?file=${file}`);
      return Container.read(new Uint8Array(await response.arrayBuffer()));
    },
  };
}

async function fetched(question: string): Promise<Response> {
  const response = await fetch(`${API}/${question}`).catch(() => {
    throw new Refusal(
      "the server does not answer; is 'deepcontext view' still running in its terminal?",
      0,
    );
  });
  if (!response.ok) {
    throw new Refusal(((await response.json()) as ErrorAnswer).error, response.status);
  }
  return response;
}

/**
 * Read the parts of a page's file: the answer to `about`, then a container for each profile; where any
 * profile has ranks, then another one for each.
 */
export function fileReader(parts: readonly string[]): Reader {
  const part = async (index: number) =>
    unpacked(new Blob([ofBase64(parts[index] ?? refuse(`this file has no profile ${index - 1}`))]));
  const kept = new Kept<Promise<Container<Header>>>(CONTAINERS_KEPT);
  const columns = (file: string) =>
    kept.get(file, async () => Container.read<Header>(await part(Number(file) + 1)));
  return {
    async container<Kind>(what: string, file: string) {
      if (what === "columns") return (await columns(file)) as unknown as Container<Kind>;
      const found = Container.read<Kind>(await part(Number(file) + (parts.length + 1) / 2));
      checked(found.header);
      return found;
    },
    async answer(what, query) {
      if (what === "about") return JSON.parse(new TextDecoder().decode(await part(0)));
      const { header } = await columns(query.file || "0");
      const key = query.name || query.path;
      const known = header[what] as Record<string, unknown> | undefined;
      // The text "" is that of all files without their own (`source_choice.py`).
      const answer = key ? (known?.[key] ?? known?.[""]) : known;
      if (!answer)
        refuse("this is not in the file; open the profile itself with 'deepcontext view'");
      return checked(answer);
    },
  };
}

function checked(answer: unknown): unknown {
  const { error } = answer as Partial<ErrorAnswer>;
  return error ? refuse(error) : answer;
}

function ofBase64(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text);
  const bytes = new Uint8Array(plain.length);
  for (let index = 0; index < plain.length; index++) bytes[index] = plain.charCodeAt(index);
  return bytes;
}

async function unpacked(packed: Blob): Promise<Uint8Array> {
  const plain = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}
