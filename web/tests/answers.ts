// Small answers for tests, as the server would give them.

import type { FlameAnswer } from "../src/engine/answers";

export interface Node {
  depth: number;
  name: string;
  value: number;
  own?: number;
  source?: number;
  sides?: (number | null)[];
}

export function answerOf(nodes: readonly Node[], more: Partial<FlameAnswer> = {}): FlameAnswer {
  const names = [...new Set(nodes.map((node) => node.name))];
  return {
    unit: "ns",
    above: 0,
    left_out: 0,
    threshold: 1,
    total: nodes[0]?.value ?? 0,
    totals: [],
    nodes: {
      depth: nodes.map((node) => node.depth),
      function: nodes.map((node) => names.indexOf(node.name)),
      value: nodes.map((node) => node.value),
      exclusive: nodes.map((node) => node.own ?? 0),
      source: nodes.map((node, index) => node.source ?? index),
      phase: nodes.map(() => "none"),
      calls: [],
      mean: [],
      deviation: [],
      minimum: [],
      maximum: [],
      sides: nodes.flatMap((node) => (node.sides ? [node.sides] : [])),
      mean_of_ranks: [],
      most: [],
      most_rank: [],
    },
    functions: {
      id: names.map((_, index) => index),
      name: names,
      kind: names.map((name) => (name === "root" ? "root" : "operator")),
      layer: names.map(() => "operator"),
      file: names.map((name) => (name === "train" ? "/home/me/train.py" : "")),
      line: names.map(() => 0),
    },
    ...more,
  };
}

/** root 100 > a 60 (> c 20, d 30), b 40 (> c 40) */
export const SMALL = answerOf([
  { depth: 0, name: "root", value: 100 },
  { depth: 1, name: "a", value: 60, own: 10 },
  { depth: 2, name: "c", value: 20, own: 20 },
  { depth: 2, name: "d", value: 30, own: 30 },
  { depth: 1, name: "b", value: 40 },
  { depth: 2, name: "c", value: 40, own: 40 },
]);
