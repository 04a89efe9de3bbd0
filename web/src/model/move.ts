// Where the arrow keys lead in a flame graph.

import type { Layout } from "./layout";

export type Direction = "up" | "down" | "left" | "right";

/** Return the neighbour of a node; the node itself where there is none. */
export function neighbour(layout: Layout, node: number, direction: Direction): number {
  if (layout.count === 0) return -1;
  if (node < 0) return 0;
  switch (direction) {
    case "up":
      return layout.parent[node] < 0 ? node : layout.parent[node];
    case "down":
      return largestChild(layout, node);
    case "left":
      return beside(layout, node, -1);
    case "right":
      return beside(layout, node, 1);
  }
}

function largestChild(layout: Layout, node: number): number {
  let best = node;
  let most = -1;
  for (let child = node + 1; child < layout.end[node]; child = layout.end[child]) {
    if (layout.value[child] > most) {
      best = child;
      most = layout.value[child];
    }
  }
  return best;
}

/** Return the next node of the same level, in whatever subtree it lies. */
function beside(layout: Layout, node: number, step: 1 | -1): number {
  for (let other = node + step; other >= 0 && other < layout.count; other += step) {
    if (layout.depth[other] === layout.depth[node]) return other;
  }
  return node;
}
