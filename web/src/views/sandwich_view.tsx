// A function with its callers above and its callees below.

import { useMemo, useState } from "preact/hooks";
import type { FlameAnswer } from "../engine/answers";
import { formatValue } from "../model/format";
import { type Layout, layOut } from "../model/layout";
import { detailsOpen, go, measure, place, profile, tree } from "../state";
import { Details } from "./details";
import { choose, Drawing } from "./drawing";
import { askedWidth, onNodeKey } from "./flame_view";
import { nodeName } from "./node_tip";
import { Dot, Empty, Link, Waiting } from "./parts";
import { useAnswer } from "./use_answer";

export function SandwichView() {
  const { func } = place.value;
  if (func < 0) {
    return (
      <Empty title="Whose callers and callees?">
        Choose one of the costliest functions here, click a name in the table, or select a box in
        the flame graph and press <kbd>s</kbd>.
        <FunctionList />
      </Empty>
    );
  }
  return <Sandwich func={func} />;
}

function FunctionList() {
  const first = profile.value?.tables[0] ?? "operator";
  const by = first === "operator" ? "" : first;
  const asked = useAnswer("table", { file: tree.value.file, metric: tree.value.metric, by });
  return (
    <ul class="plain-list">
      {asked.answer?.rows.slice(0, 12).map((row) => (
        <li key={row.id}>
          <Dot layer={row.layer} />
          <Link onClick={() => go({ func: row.id })}>{row.name}</Link>{" "}
          <span class="muted">{formatValue(row.exclusive, asked.answer?.unit ?? "")} self</span>
        </li>
      ))}
    </ul>
  );
}

function Sandwich(props: { func: number }) {
  const common = { ...tree.value, function: String(props.func), px: askedWidth() };
  const callers = useAnswer("flame", { ...common, kind: "callers" });
  const callees = useAnswer("flame", { ...common, kind: "callees" });
  const error = callers.error || callees.error;
  if (error) return <Empty title="Nothing to draw">{error}</Empty>;
  if (!callers.answer || !callees.answer) return <Waiting />;
  return <Halves callers={callers.answer} callees={callees.answer} func={props.func} />;
}

function Halves(props: { callers: FlameAnswer; callees: FlameAnswer; func: number }) {
  const [half, setHalf] = useState<"callers" | "callees">("callees");
  const [node, setNode] = useState(1);
  const { order } = place.value;
  const above = useMemo(() => layOut(props.callers, order), [props.callers, order]);
  const below = useMemo(() => layOut(props.callees, order), [props.callees, order]);
  const shown = half === "callers" ? above : below;
  const name = below.count > 1 ? nodeName(below, 1) : "";
  const chooseIn = (which: "callers" | "callees", layout: Layout) => (each: number) => {
    setHalf(which);
    setNode(each);
    choose(layout, each);
  };
  return (
    <div class="split">
      <div class="split-main sandwich">
        <p class="sandwich-title">
          <span class="muted">called by</span>
          <span class="status-hint">
            {measure.value?.label}: <b>{formatValue(below.total, below.unit)}</b> with callees
          </span>
        </p>
        <Half
          layout={above}
          upward
          level={2}
          selected={half === "callers" ? node : -1}
          onSelect={chooseIn("callers", above)}
          label={`Callers of ${name}`}
        />
        <p class="sandwich-title">
          <span class="muted">
            <b>{name}</b> calls
          </span>
        </p>
        <Half
          layout={below}
          upward={false}
          graph={1}
          level={1}
          selected={half === "callees" ? node : -1}
          onSelect={chooseIn("callees", below)}
          label={`Callees of ${name}`}
        />
      </div>
      {detailsOpen.value && (
        <Details
          layout={shown}
          node={node < shown.count ? node : -1}
          backwards={half === "callers"}
          merged
        />
      )}
    </div>
  );
}

function Half(props: {
  layout: Layout;
  upward: boolean;
  level: number;
  graph?: number;
  selected: number;
  label: string;
  onSelect: (node: number) => void;
}) {
  const { layout, upward } = props;
  if (layout.deepest < props.level) {
    return <p class="muted note">{upward ? "No callers." : "No callees are shown."}</p>;
  }
  return (
    <Drawing
      {...props}
      backwards={upward}
      first={1}
      onKey={(event, node) => onNodeKey(event, layout, node, true)}
    />
  );
}
