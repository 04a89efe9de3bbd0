// The functions of a tree, each with what it costs at all places together.

import type { TableRow } from "./answers";
import type { GroupTable } from "./tables";
import type { TopDown } from "./top_down";
import type { Numbers } from "./tree";

/** All functions of a view; recursion counts once in `inclusive`. They have no phases. */
export function functionRows(view: TopDown, values: Numbers): GroupTable {
  const { tree, functions } = view;
  const own = view.exclusive(values);
  const below = tree.inclusive(own);
  const count = functions.length;
  const inclusive = new Float64Array(count);
  const exclusive = new Float64Array(count);
  const contexts = new Float64Array(count);
  // End of the topmost subtree of each function that is open.
  const inside = new Int32Array(count);
  for (let node = 1; node < tree.length; node++) {
    const func = tree.frame[node];
    contexts[func]++;
    exclusive[func] += own[node];
    if (node < inside[func]) continue;
    inclusive[func] += below[node];
    inside[func] = tree.end[node];
  }
  const calls = view.callsOf(tree.frame, count);
  const rows: TableRow[] = [];
  for (let func = 0; func < count; func++) {
    const id = functions.example[func];
    if (id < 0 || !(inclusive[func] || exclusive[func])) continue;
    const { name, file, line } = functions.shown(func);
    rows.push({
      ...{ id, name, file, line, layer: functions.layerName(func), phases: [] },
      inclusive: inclusive[func],
      exclusive: exclusive[func],
      contexts: contexts[func],
      calls: calls?.spread(func) ?? null,
    });
  }
  rows.sort((a, b) => b.exclusive - a.exclusive);
  return { rows, total: below[0] };
}
