// Which colour each node of a graph gets, and the legend that says so.

import type { ColorBy } from "../model/address";
import { mix, palette, shadeOf, shades } from "../model/colors";
import { type Layout, pairOf } from "../model/layout";

/** Return a function from node to fill. */
export function fillsOf(layout: Layout, by: ColorBy, dark: boolean): (node: number) => string {
  const colors = palette(dark);
  if (layout.sides) return changeFills(layout, dark);
  const { spread } = layout;
  if (by === "spread" && spread) {
    return (node) => {
      const part = spread.most[node] / spread.mean_of_ranks[node] - 1;
      return spread.most[node] < 0 ? colors.gap : mix(colors.heat[0], colors.heat[1], part);
    };
  }
  if (by === "self") {
    const most = Math.max(layout.most, 1);
    return (node) => mix(colors.heat[0], colors.heat[1], Math.sqrt(layout.exclusive[node] / most));
  }
  if (by === "phase") {
    return (node) => colors.phases[layout.phase[node]] ?? colors.phases.none;
  }
  const { name, layer } = layout.functions;
  const shaded = layerFills(dark);
  const fills = name.map((each, func) => shaded(layer[func], each));
  return (node) => fills[layout.func[node]];
}

/** Return a function from layer and name to a shade of the layer's colour. */
export function layerFills(dark: boolean): (layer: string, name: string) => string {
  const { layers } = palette(dark);
  const known: Record<string, string[]> = {};
  return (layer, name) => {
    known[layer] ??= shades(layers[layer] ?? layers.root, dark);
    return known[layer][shadeOf(name)];
  };
}

function changeFills(layout: Layout, dark: boolean): (node: number) => string {
  const colors = palette(dark);
  return (node) => {
    const [before, after] = pairOf(layout, node);
    const change = after - before;
    // Relative to the box: a box that is all new or all gone gets the full colour.
    const part = change / Math.max(layout.value[node], 1);
    return mix(colors.same, change > 0 ? colors.more : colors.less, Math.sqrt(Math.abs(part)));
  };
}
