// Several profiles: the difference of two in one graph, all as columns of a table, or beside each other.

import type { FunctionComponent } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { FlameAnswer } from "../engine/answers";
import type { Place } from "../model/address";
import { palette } from "../model/colors";
import { formatValue } from "../model/format";
import { type Layout, layOut } from "../model/layout";
import {
  about,
  asTable,
  compared,
  dark,
  detailsOpen,
  go,
  place,
  selected,
  spoken,
  tree,
} from "../state";
import { Legend } from "./bar";
import { Changes } from "./changes_view";
import { TakeAway } from "./copy";
import { Details } from "./details";
import { Drawing } from "./drawing";
import { askedWidth } from "./flame_view";
import { useGraph } from "./graph_handle";
import { changeOf, nodeSentence, profileName } from "./node_tip";
import { Check, Empty, Select, Subtabs, Waiting } from "./parts";
import { Sources } from "./sources_view";
import { useAnswer } from "./use_answer";

const SIDES: Record<string, string> = { changes: "biggest changes", beside: "side by side" };
const SHOWN: Record<Place["sides"], FunctionComponent> = {
  changes: Changes,
  difference: Difference,
  beside: Beside,
  sources: Sources,
};

export function CompareView() {
  const files = compared.value;
  if (files.length < 2) {
    return (
      <Empty title="Only one profile is open">
        Compare some with <code>deepcontext view before.dcprof after.dcprof</code>
      </Empty>
    );
  }
  const { sides, normalize } = place.value;
  const Shown = SHOWN[sides];
  const all = (about.value?.profiles ?? [])
    .slice(0, about.value?.compared)
    .map((each, file) => [file, each.name] as const);
  return (
    <div class="page column">
      <div class="subtabs">
        <Subtabs
          label="How to compare"
          names={Object.keys(SHOWN) as Place["sides"][]}
          chosen={sides}
          text={(name) => SIDES[name] ?? name}
          onChoose={(chosen) => go({ sides: chosen })}
        />
        <Select
          label="Base"
          value={files[0]}
          options={all}
          onChoose={(base) => go({ base: Number(base) })}
        />
        {all.length > 2 && (
          <Select
            label="Against"
            value={files.length > 2 ? -1 : files[1]}
            options={[[-1, "all others"], ...all.filter(([file]) => file !== files[0])]}
            onChoose={(other) => go({ other: Number(other) })}
          />
        )}
        <button type="button" onClick={() => go({ base: files[1], other: files[0] })}>
          Swap
        </button>
        {sides === "difference" && (
          <Check
            text="normalise: scale the others to the total of the base"
            checked={normalize}
            onCheck={(checked) => go({ normalize: checked })}
          />
        )}
      </div>
      <Shown key={files.join()} />
    </div>
  );
}

function Difference() {
  const query = {
    ...tree.value,
    file: "",
    kind: "difference",
    files: compared.value.join(),
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
  const { totals, unit } = props.answer;
  const { order } = place.value;
  const layout = useMemo(() => layOut(props.answer, order), [props.answer, order]);
  const select = (each: number) => choose(layout, each, setNode);
  const handle = useGraph(layout, select);
  const colors = palette(dark.value);
  const head = totals.flatMap((_, side) =>
    side ? [profileName(side), "change"] : [profileName(side)],
  );
  return (
    <>
      <div class="status compare-sum">
        {totals.map((total, side) => (
          <span key={side}>
            <b>{profileName(side)}</b> {formatValue(total, unit)}
            {side > 0 && ` (${changeOf(totals[0], total, unit)})`}
          </span>
        ))}
        <TakeAway />
        {!asTable.value && (
          <>
            <Legend
              parts={(["less", "same", "more"] as const).map((name) => ({
                name,
                color: colors[name],
              }))}
            />
            <span>width: the larger of the two values</span>
          </>
        )}
      </div>
      <div class="split">
        <div class="split-main">
          <Drawing
            layout={layout}
            selected={node}
            onSelect={select}
            handle={handle}
            label="Difference of profiles"
            head={head}
          />
        </div>
        {detailsOpen.value && <Details layout={layout} node={node} />}
      </div>
    </>
  );
}

/** Select a node that is not one of the profile that other views show. */
function choose(layout: Layout, node: number, set: (node: number) => void): void {
  set(node);
  selected.value = { node: -1, func: -1, layout: node };
  spoken.value = nodeSentence(layout, node);
}

function Beside() {
  // The function below the mouse, which all graphs mark.
  const [name, setName] = useState("");
  return (
    <div class="sandwich beside">
      {compared.value.map((file, side) => (
        <OneSide
          key={file}
          file={file}
          side={side}
          title={profileName(side)}
          name={name}
          onName={setName}
        />
      ))}
    </div>
  );
}

function OneSide(props: {
  file: number;
  side: number;
  title: string;
  name: string;
  onName: (name: string) => void;
}) {
  const [node, setNode] = useState(-1);
  const { order } = place.value;
  const file = props.file ? String(props.file) : "";
  const { answer, error } = useAnswer("flame", { ...tree.value, file, px: askedWidth() });
  const layout = useMemo(() => answer && layOut(answer, order), [answer, order]);
  if (error) return <Empty title="Nothing to compare">{error}</Empty>;
  if (!layout) return <Waiting />;
  return (
    <>
      <p class="sandwich-title">
        <b>{props.title}</b>
        <span class="status-hint">{formatValue(layout.total, layout.unit)}</span>
      </p>
      <Drawing
        layout={layout}
        selected={node}
        onSelect={(each) => choose(layout, each, setNode)}
        graph={props.side}
        label={`Flame graph of ${props.title}`}
        same={props.name ? layout.functions.name.indexOf(props.name) : -1}
        onHover={(each) => props.onName(each < 0 ? "" : layout.functions.name[layout.func[each]])}
      />
    </>
  );
}
