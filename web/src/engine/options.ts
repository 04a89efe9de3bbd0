// What a question asks: which tree of which profile, and which cost.

import { EDIT_KINDS, type EditKind, PIVOTS, type Query } from "../model/question";
import { Refusal } from "../refusal";
import type { ProfileFacts } from "./profile";

export interface Edit {
  readonly kind: EditKind;
  readonly target: number;
}

export interface TreeOptions {
  readonly hidden: readonly string[];
  readonly library: boolean;
  readonly byLine: boolean;
  /** Number of the phase that counts, -1 for all. */
  readonly phase: number;
  readonly pivot: string;
  readonly edits: readonly Edit[];
}

export const DEFAULT_METRIC = "host_time_ns";
export const ALL_PHASES = -1;
const MOST_PX = 16_384;
const DEFAULT_PX = 1_536;

export function refuse(message: string): never {
  throw new Refusal(message, 400);
}

export function treeOptions(query: Query, facts: ProfileFacts): TreeOptions {
  const hidden = words(query.hidden);
  for (const name of hidden) {
    if (!facts.optional_layers.includes(name)) {
      refuse(`no layer '${name}'; known: ${facts.optional_layers.join(", ")}`);
    }
  }
  const phase = query.phase ? facts.phases.indexOf(query.phase) : ALL_PHASES;
  if (query.phase && phase < 0) {
    refuse(`no phase '${query.phase}'; known: ${facts.phases.join(", ")}`);
  }
  const pivot = query.pivot || PIVOTS[0];
  if (!PIVOTS.includes(pivot)) {
    refuse(`cannot split the tree by '${pivot}'; known: ${PIVOTS.join(", ")}`);
  }
  return {
    hidden,
    library: query.library === "1",
    byLine: query.lines === "1",
    phase,
    pivot,
    edits: words(query.edits).map(readEdit),
  };
}

export function pixels(query: Query): number {
  return Math.min(Math.max(wholeNumber(query, "px", DEFAULT_PX), 1), MOST_PX);
}

export function wholeNumber(query: Query, name: string, missing: number): number {
  const text = query[name] ?? "";
  if (!text) return missing;
  if (!/^\d{1,15}$/.test(text)) refuse(`'${name}' must be a whole number, found '${text}'`);
  return Number(text);
}

/** A text that is equal for options that give the same tree, whatever phase is counted. */
export function shapeOf(options: TreeOptions): string {
  const { hidden, library, byLine, pivot, edits } = options;
  return JSON.stringify([[...hidden].sort(), library, byLine, pivot, edits]);
}

function words(text: string | undefined): string[] {
  return (text ?? "").split(",").filter(Boolean);
}

function readEdit(text: string): Edit {
  const [, kind, target] = /^(\w+):(\d+)$/.exec(text) ?? [];
  if (EDIT_KINDS.includes(kind as EditKind)) {
    return { kind: kind as EditKind, target: Number(target) };
  }
  return refuse(`cannot read the edit '${text}'`);
}
