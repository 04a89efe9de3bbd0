// What a text finds among the nodes that are drawn, for graphs of callers and comparisons.

import type { FunctionColumns } from "../engine/answers";
import type { Layout } from "./layout";

/** Say of each function whether its name or file contains a text, in lower or upper case. */
export function matching(functions: FunctionColumns, text: string): Uint8Array | null {
  const wanted = text.toLowerCase();
  if (!wanted) return null;
  return Uint8Array.from(functions.name, (name, index) =>
    name.toLowerCase().includes(wanted) || functions.file[index].toLowerCase().includes(wanted)
      ? 1
      : 0,
  );
}

/** Return the nodes of matching functions, the costliest first, and what the outermost of them cost together. */
export function found(layout: Layout, matches: Uint8Array) {
  const nodes: number[] = [];
  let value = 0;
  let covered = 0;
  for (let node = 1; node < layout.count; node += 1) {
    if (!matches[layout.func[node]]) continue;
    nodes.push(node);
    if (node >= covered) {
      value += layout.value[node];
      covered = layout.end[node];
    }
  }
  nodes.sort((a, b) => layout.value[b] - layout.value[a] || a - b);
  return { nodes, value };
}
