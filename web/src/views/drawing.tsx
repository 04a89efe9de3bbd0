// A tree as a graph or as a table, whichever the user has chosen.

import { useMemo, useState } from "preact/hooks";
import { palette } from "../model/colors";
import { formatShare } from "../model/format";
import { type Layout, pairOf } from "../model/layout";
import { rangeOf, withRange } from "../model/range";
import { matching } from "../model/search";
import { asTable, dark, detailsOpen, go, place, selected, spoken } from "../state";
import { fillsOf } from "./coloring";
import { FlameCanvas, type FlameCanvasProps } from "./flame_canvas";
import { NodeTip, nodeName, nodeSentence, ratioText } from "./node_tip";
import { TreeTable, type TreeTableProps } from "./tree_table";

type DrawingProps = Omit<FlameCanvasProps, "scene" | "tip" | "onKey" | "shown" | "onShown"> &
  Partial<Pick<FlameCanvasProps, "shown" | "onShown">> &
  Pick<TreeTableProps, "first" | "head" | "onKey"> & {
    backwards?: boolean;
    upward?: boolean;
    /** The first level of a graph. */
    level?: number;
    /** The number of the graph in its view. */
    graph?: number;
    /** The function to mark, instead of that below the mouse. */
    same?: number;
  };

export function Drawing(props: DrawingProps) {
  const { layout, backwards = false, upward = false, graph = 0 } = props;
  const { color, text, range } = place.value;
  const fills = useMemo(() => fillsOf(layout, color, dark.value), [layout, color, dark.value]);
  const matches = useMemo(() => matching(layout.functions, text), [layout.functions, text]);
  const [hovered, setHovered] = useState(-1);
  if (asTable.value) return <TreeTable {...props} matches={matches} backwards={backwards} />;
  return (
    <FlameCanvas
      shown={rangeOf(range, graph)}
      onShown={(shown, _, isMerged) =>
        go({ range: withRange(range, graph, shown) }, isMerged ? "merged" : "push")
      }
      {...props}
      scene={{
        fills,
        labels: (node) => nodeName(layout, node),
        shares: (node) =>
          layout.sides
            ? ratioText(...pairOf(layout, node))
            : formatShare(layout.value[node], layout.total),
        matches,
        same: props.same ?? (hovered >= 0 ? layout.func[hovered] : -1),
        palette: palette(dark.value),
        upward,
        first: props.level ?? 0,
      }}
      label={`${props.label}: arrow keys move, Enter zooms, v shows a table`}
      tip={(node) => <NodeTip layout={layout} node={node} backwards={backwards} />}
      onHover={(node) => {
        setHovered(node);
        props.onHover?.(node);
      }}
    />
  );
}

/** Select a node of the profile that is shown. */
export function choose(layout: Layout, node: number): void {
  selected.value = {
    node: layout.source[node],
    func: layout.functions.id[layout.func[node]],
    layout: node,
  };
  spoken.value = nodeSentence(layout, node);
  // On a phone they are a sheet at the bottom.
  if (matchMedia("(max-width: 699px)").matches) detailsOpen.value = true;
}
