// What the user looks at, as the part of the address after "#": it can be kept, sent and undone.

import { EDIT_KINDS, type EditKind } from "./question";

/** The views in the order of their tabs, and what these say. */
export const VIEWS = {
  overview: "Overview",
  processes: "Processes",
  ranks: "Ranks",
  flame: "Flame graph",
  "bottom-up": "Bottom-up",
  sandwich: "Sandwich",
  table: "Table",
  source: "Source",
  compare: "Compare",
  findings: "Findings",
  roofline: "Roofline",
  timeline: "Time line",
  data: "Data",
  trust: "Trust",
} as const;
export type View = keyof typeof VIEWS;

/** One change made to the tree; the target is a node (root) or a frame, the label its name. */
export interface Edit {
  readonly kind: EditKind;
  readonly target: number;
  readonly label: string;
}

export type ColorBy = "layer" | "phase" | "self" | "spread";
export type Shape = "graph" | "tree";

export interface Place {
  readonly view: View;
  readonly file: number;
  readonly metric: string;
  readonly hidden: readonly string[];
  readonly library: boolean;
  /** Whether each line is a box of its own: "1" or "0", or "" for what suits the measure. */
  readonly lines: string;
  readonly phase: string;
  readonly pivot: string;
  readonly edits: readonly Edit[];
  /** The node that fills the width of the flame graph; -1 for the whole. */
  readonly zoom: number;
  /** What part of the width is shown, of each graph (`range.ts`); in the flame graph, of the node. */
  readonly range: string;
  readonly func: number;
  readonly path: string;
  readonly line: number;
  readonly by: string;
  readonly sort: string;
  readonly text: string;
  readonly color: ColorBy;
  readonly order: "program" | "size";
  /** Where the root of a graph is. */
  readonly roots: "top" | "bottom";
  readonly shape: Shape;
  readonly sides: "difference" | "changes" | "beside" | "sources";
  readonly normalize: boolean;
  /** What the others are compared with, and the only other one that is shown; -1 for all. */
  readonly base: number;
  readonly other: number;
  readonly section: string;
  /** What a point of the roofline stands for. */
  readonly points: string;
  /** The kept step of the time line; 0 for the slowest. */
  readonly step: number;
}

export const START: Place = {
  view: "overview",
  file: 0,
  metric: "",
  hidden: [],
  library: false,
  lines: "",
  phase: "",
  pivot: "thread",
  edits: [],
  zoom: -1,
  range: "",
  func: -1,
  path: "",
  line: 0,
  by: "operator",
  sort: "exclusive",
  text: "",
  color: "layer",
  order: "program",
  roots: "top",
  shape: "graph",
  sides: "difference",
  normalize: false,
  base: 0,
  other: -1,
  section: "",
  points: "line",
  step: 0,
};

const CHOICES: Partial<Record<keyof Place, readonly string[]>> = {
  view: Object.keys(VIEWS),
  color: ["layer", "phase", "self", "spread"],
  order: ["program", "size"],
  roots: ["top", "bottom"],
  shape: ["graph", "tree"],
  sides: ["difference", "changes", "beside", "sources"],
  lines: ["0", "1"],
};

/**
 * Write a place as `view=table&by=module`; only what differs from the start. An address without a
 * view that names anything else, as older ones do, is of the flame graph.
 */
export function toHash(place: Place): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(place)) {
    const text = valueText(name, value);
    if (text !== valueText(name, START[name as keyof Place])) parts.set(name, text);
  }
  if (parts.size && !parts.has("view")) parts.set("view", place.view);
  return parts.toString();
}

function valueText(name: string, value: unknown): string {
  if (name === "edits") {
    return (value as Edit[])
      .map((edit) => `${edit.kind}:${edit.target}:${encodeURIComponent(edit.label)}`)
      .join(",");
  }
  if (typeof value === "boolean") return value ? "1" : "0";
  return Array.isArray(value) ? value.join(",") : String(value);
}

/** Read a place; what cannot be read keeps its start value. */
export function fromHash(hash: string): Place {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const place: Record<string, unknown> = { ...START };
  for (const [name, text] of parts) {
    if (name in START) place[name] = read(name as keyof Place, text);
  }
  if (parts.size && !parts.has("view")) place.view = "flame";
  return place as unknown as Place;
}

function read(name: keyof Place, text: string): unknown {
  const start = START[name];
  if (name === "edits") return text.split(",").flatMap(readEdit);
  if (Array.isArray(start)) return text.split(",").filter(Boolean);
  if (typeof start === "boolean") return text === "1";
  if (typeof start === "number") return /^\d+$/.test(text) ? Number(text) : start;
  return (CHOICES[name]?.includes(text) ?? text) ? text : start;
}

function readEdit(text: string): Edit[] {
  const [kind, target, label = ""] = text.split(":");
  const known = EDIT_KINDS.find((each) => each === kind);
  if (!known || !/^\d+$/.test(target ?? "")) return [];
  let name = "";
  try {
    name = decodeURIComponent(label);
  } catch {
    name = label; // a hand-made address
  }
  return [{ kind: known, target: Number(target), label: name }];
}

/** Return the common part of the questions: which tree of which profile, and which cost. */
export function treeQuery(
  place: Place,
  defaultMetric: string,
  byLine: boolean,
): Record<string, string> {
  return {
    file: place.file ? String(place.file) : "",
    metric: named(place.metric || defaultMetric),
    hidden: [...place.hidden].sort(byLayer).join(","),
    library: place.library ? "1" : "",
    lines: byLine ? "1" : "",
    phase: place.phase,
    pivot: place.pivot === "thread" ? "" : place.pivot,
    edits: place.edits.map((edit) => `${edit.kind}:${edit.target}`).join(","),
  };
}

/** The server uses host time when no metric is named; any other metric must be named. */
export function named(metric: string): string {
  return metric === SERVER_METRIC ? "" : metric;
}

const SERVER_METRIC = "host_time_ns";

// The order of `Layer` in src/deepcontext/profiler/views/layers.py.
const LAYERS = ["python", "scope", "module", "operator", "compiled", "native", "gpu"];

function byLayer(a: string, b: string): number {
  return LAYERS.indexOf(a) - LAYERS.indexOf(b);
}
