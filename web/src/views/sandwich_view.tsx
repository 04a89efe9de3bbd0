// A function with its callers above and its callees below.

import { useMemo, useState } from "preact/hooks";
import type { FlameAnswer, TableRow } from "../engine/answers";
import { formatValue } from "../model/format";
import { type Layout, layOut } from "../model/layout";
import { spelling } from "../model/question";
import { detailsOpen, go, measure, place, tree } from "../state";
import { Details } from "./details";
import { choose, Drawing } from "./drawing";
import { askedWidth, onNodeKey } from "./flame_view";
import { nodeName } from "./node_tip";
import { Empty, Waiting, words } from "./parts";
import { useRowMatches } from "./search_box";
import {
  CALL_COLUMN,
  type Column,
  costColumns,
  nameColumn,
  Others,
  SortedTable,
} from "./sorted_table";
import { useAnswer } from "./use_answer";

export function SandwichView() {
  const { func } = place.value;
  return (
    <div class="split">
      <FunctionList func={func} />
      {func < 0 ? (
        <Empty title="Whose callers and callees?">
          Choose a function in the list, click a name in the table, or select a box in the flame
          graph and press <kbd>s</kbd>.
        </Empty>
      ) : (
        <Sandwich func={func} />
      )}
    </div>
  );
}

function columnsOf(unit: string): Column<TableRow>[] {
  return [
    nameColumn((row) => go({ func: row.id })),
    ...costColumns((value) => formatValue(value, unit)),
    CALL_COLUMN,
  ];
}

/** The functions of the tree that match the search. */
function FunctionList(props: { func: number }) {
  const query = { ...tree.value, text: place.value.text };
  const asked = useAnswer("functions", query);
  const { answer, error } = asked;
  useRowMatches(asked, spelling("functions", query), ({ id }) => go({ func: id }));
  return (
    <nav class="functions" aria-label="Functions">
      {answer ? (
        <SortedTable
          label="All functions"
          columns={columnsOf(answer.unit)}
          rows={answer.rows}
          isChosen={(row) => row.id === props.func}
        >
          <Others answer={answer} />
        </SortedTable>
      ) : error ? (
        <Empty title="No functions">{error}</Empty>
      ) : (
        <Waiting />
      )}
    </nav>
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
  const query = { ...tree.value, function: String(props.func) };
  const phases = useAnswer("node", query).answer?.phases ?? [];
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
    <>
      <div class="split-main sandwich">
        <p class="sandwich-title">
          <span class="muted">called by</span>
          <span class="status-hint">
            {measure.value?.label}: <b>{formatValue(below.total, below.unit)}</b> with callees
            {phases.length > 1 &&
              `: ${phases.map((each) => `${words(each.phase)} ${formatValue(each.value, below.unit)}`).join(" + ")}`}
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
    </>
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
