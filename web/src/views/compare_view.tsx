// Two profiles: the difference in one graph, or both beside each other.

import { useMemo, useState } from "preact/hooks";
import type { FlameAnswer } from "../engine/answers";
import { palette } from "../model/colors";
import { formatShare, formatValue } from "../model/format";
import { type Layout, layOut } from "../model/layout";
import { matching } from "../model/search";
import { about, dark, detailsOpen, go, place, selected, spoken, tree } from "../state";
import { fillsOf } from "./coloring";
import { Details } from "./details";
import { FlameCanvas } from "./flame_canvas";
import { askedWidth } from "./flame_view";
import { changeText, NodeTip, nodeName, nodeSentence, ratioText } from "./node_tip";
import { Empty, Waiting } from "./parts";
import { TreeTable } from "./tree_table";
import { useAnswer } from "./use_answer";

export function CompareView() {
  const profiles = about.value?.profiles ?? [];
  if (profiles.length < 2) {
    return (
      <Empty title="Only one profile is open">
        Compare two with <code>deepcontext view before.dcprof after.dcprof</code>
      </Empty>
    );
  }
  const { sides, normalize } = place.value;
  return (
    <div class="page column">
      <div class="subtabs">
        <div role="tablist" aria-label="How to compare">
          <button
            type="button"
            role="tab"
            aria-selected={sides === "difference"}
            onClick={() => go({ sides: "difference" })}
          >
            difference
          </button>
          <button
            type="button"
            role="tab"
            aria-selected={sides === "beside"}
            onClick={() => go({ sides: "beside" })}
          >
            side by side
          </button>
        </div>
        {sides === "difference" && (
          <label class="check">
            <input
              type="checkbox"
              checked={normalize}
              onChange={(event) => go({ normalize: event.currentTarget.checked })}
            />
            normalise: scale the second to the total of the first
          </label>
        )}
      </div>
      {sides === "difference" ? <Difference /> : <Beside />}
    </div>
  );
}

function Difference() {
  const query = {
    ...tree.value,
    file: "",
    kind: "difference",
    normalize: place.value.normalize ? "1" : "",
    px: askedWidth(),
  };
  const asked = useAnswer("flame", query);
  if (asked.error) return <Empty title="Nothing to compare">{asked.error}</Empty>;
  if (!asked.answer) return <Waiting />;
  return <DifferenceGraph answer={asked.answer} />;
}

function DifferenceGraph(props: { answer: FlameAnswer }) {
  const [node, setNode] = useState(-1);
  const layout = useMemo(
    () => layOut(props.answer, place.value.order),
    [props.answer, place.value.order],
  );
  const [first, second] = about.value?.profiles ?? [];
  const colors = palette(dark.value);
  const ratio = ratioText(layout.totalBefore, layout.totalAfter);
  return (
    <>
      <div class="status compare-sum">
        <span>
          <b>{first.name}</b> {formatValue(layout.totalBefore, layout.unit)}
        </span>
        <span>
          <b>{second.name}</b> {formatValue(layout.totalAfter, layout.unit)}
        </span>
        <span>
          {changeText(layout.totalBefore, layout.totalAfter, layout.unit)}
          {ratio && ` (${ratio})`}
        </span>
        <span class="legend-line">
          <span>
            <i style={{ background: colors.less }} /> less
          </span>
          <span>
            <i style={{ background: colors.same }} /> same
          </span>
          <span>
            <i style={{ background: colors.more }} /> more
          </span>
        </span>
        <span>a box is as wide as the larger of its two sides</span>
      </div>
      <Graph layout={layout} node={node} onSelect={setNode} label="Difference of two profiles" />
    </>
  );
}

function Beside() {
  const names = about.value?.profiles ?? [];
  const [chosen, setChosen] = useState<readonly [number, number]>([0, -1]);
  const common = { ...tree.value, px: askedWidth() };
  const first = useAnswer("flame", { ...common, file: "" });
  const second = useAnswer("flame", { ...common, file: "1" });
  const { order } = place.value;
  const layouts = [
    useMemo(() => (first.answer ? layOut(first.answer, order) : null), [first.answer, order]),
    useMemo(() => (second.answer ? layOut(second.answer, order) : null), [second.answer, order]),
  ];
  const [name, setName] = useState("");
  const error = first.error || second.error;
  if (error) return <Empty title="Nothing to compare">{error}</Empty>;
  return (
    <div class="sandwich">
      {layouts.map((layout, side) =>
        layout ? (
          <>
            <p class="sandwich-title">
              <b>{names[side]?.name}</b>
              <span class="status-hint">{formatValue(layout.total, layout.unit)}</span>
            </p>
            <Graph
              layout={layout}
              node={chosen[0] === side ? chosen[1] : -1}
              onSelect={(node) => setChosen([side, node])}
              label={`Flame graph of ${names[side]?.name}`}
              same={name}
              onName={setName}
              plain
            />
          </>
        ) : (
          <Waiting />
        ),
      )}
    </div>
  );
}

function Graph(props: {
  layout: Layout;
  node: number;
  onSelect: (node: number) => void;
  label: string;
  same?: string;
  onName?: (name: string) => void;
  plain?: boolean;
}) {
  const { layout, node } = props;
  const { color, shape, text } = place.value;
  const fills = useMemo(() => fillsOf(layout, color, dark.value), [layout, color, dark.value]);
  const matches = useMemo(() => matching(layout.functions, text), [layout.functions, text]);
  const choose = (each: number) => {
    props.onSelect(each);
    selected.value = { node: -1, func: -1, layout: each };
    spoken.value = nodeSentence(layout, each);
  };
  const graph =
    shape === "tree" ? (
      <TreeTable
        layout={layout}
        selected={node}
        onSelect={choose}
        matches={matches}
        backwards={false}
      />
    ) : (
      <FlameCanvas
        layout={layout}
        scene={{
          fills,
          labels: (each) => nodeName(layout, each),
          shares: (each) =>
            layout.before && layout.after
              ? ratioText(layout.before[each], layout.after[each])
              : formatShare(layout.value[each], layout.total),
          matches,
          same: props.same ? layout.functions.name.indexOf(props.same) : -1,
          palette: palette(dark.value),
          upward: false,
          first: 0,
        }}
        selected={node}
        label={`${props.label}: arrow keys move, Enter zooms`}
        tip={(each) => <NodeTip layout={layout} node={each} />}
        onSelect={choose}
        onHover={(each) => props.onName?.(each < 0 ? "" : layout.functions.name[layout.func[each]])}
      />
    );
  if (props.plain) return graph;
  return (
    <div class="split">
      <div class="split-main">{graph}</div>
      {detailsOpen.value && <Details layout={layout} node={node} />}
    </div>
  );
}
