// The description of a node beside the mouse, and for a screen reader.

import { callTexts, formatShare, formatValue } from "../model/format";
import { isolated } from "../model/labels";
import { callsAt, type Layout } from "../model/layout";
import { about, compared } from "../state";
import { shorten } from "./parts";

/** Return the name a node is shown by. */
export function nodeName(layout: Layout, node: number): string {
  const func = layout.func[node];
  const { name, kind, line } = layout.functions;
  if (kind[func] === "root") return "whole program";
  const own = isolated(name[func]);
  return line[func] > 0 ? `${own}:${line[func]}` : own;
}

/** Return one sentence for a screen reader. */
export function nodeSentence(layout: Layout, node: number): string {
  const value = formatValue(layout.value[node], layout.unit);
  const share = formatShare(layout.value[node], layout.total);
  const layer = layout.functions.layer[layout.func[node]];
  return `${nodeName(layout, node)}, ${layer}, ${value}, ${share} of total, level ${layout.depth[node]}`;
}

export function NodeTip(props: { layout: Layout; node: number; backwards?: boolean }) {
  const { layout, node } = props;
  const func = layout.func[node];
  const file = layout.functions.file[func];
  const phase = layout.phase[node];
  const above = layout.parent[node];
  const share = formatShare(layout.value[node], layout.total);
  const ofParent = above > 0 ? formatShare(layout.value[node], layout.value[above]) : "";
  return (
    <>
      <div class="tip-name">{nodeName(layout, node)}</div>
      <div class="tip-kind">
        {layout.functions.kind[func].replace("_", " ")}
        {phase && phase !== "none" ? ` · ${phase.replace("_", " ")}` : ""}
        {file ? ` · ${shorten(file)}` : ""}
      </div>
      <table class="tip-values">
        <tbody>
          {layout.sides ? (
            <Changes layout={layout} node={node} />
          ) : (
            <>
              <Row
                name={props.backwards ? "cost" : "total"}
                value={formatValue(layout.value[node], layout.unit)}
                more={share}
              />
              {!props.backwards && (
                <Row
                  name="self"
                  value={formatValue(layout.exclusive[node], layout.unit)}
                  more={formatShare(layout.exclusive[node], layout.total)}
                />
              )}
              {ofParent && (
                <Row name={props.backwards ? "of callee" : "of parent"} value={ofParent} />
              )}
            </>
          )}
          <Calls layout={layout} node={node} />
          <Spread layout={layout} node={node} />
        </tbody>
      </table>
    </>
  );
}

function Row(props: { name: string; value: string; more?: string }) {
  return (
    <tr>
      <th scope="row">{props.name}</th>
      <td>{props.value}</td>
      <td class="muted">{props.more ?? ""}</td>
    </tr>
  );
}

function Calls(props: { layout: Layout; node: number }) {
  const calls = callsAt(props.layout, props.node);
  return (
    calls && callTexts(calls).map(([name, value]) => <Row key={name} name={name} value={value} />)
  );
}

/** How the cost spreads over the ranks, where that is the colour. */
function Spread(props: { layout: Layout; node: number }) {
  const { layout, node } = props;
  const { spread } = layout;
  if (!spread || spread.most[node] < 0) return null;
  const value = (cost: number) => formatValue(Math.round(cost), layout.unit);
  return (
    <>
      <Row name="mean of ranks" value={value(spread.mean_of_ranks[node])} />
      <Row name="most" value={value(spread.most[node])} more={`rank ${spread.most_rank[node]}`} />
    </>
  );
}

function Changes(props: { layout: Layout; node: number }) {
  const { layout, node } = props;
  const sides = layout.sides?.[node] ?? [];
  return sides.map((value, side) => (
    <>
      <Row
        name={profileName(side)}
        value={sideText(value, layout.unit)}
        more={value === null ? "" : formatShare(value, layout.totals[side])}
      />
      {side > 0 && <Row name="change" value={changeOf(sides[0], value, layout.unit)} />}
    </>
  ));
}

/** Return the name of one of the profiles that are compared. */
export function profileName(side: number): string {
  return about.value?.profiles[compared.value[side]]?.name ?? "";
}

/** Return a value of a profile; nothing where the profile lacks the node. */
export function sideText(value: number | null, unit: string): string {
  return value === null ? "" : formatValue(value, unit);
}

/** Return a change as difference and ratio; nothing where neither profile has the node. */
export function changeOf(base: number | null, value: number | null, unit: string): string {
  if (base === null && value === null) return "";
  const [before, after] = [base ?? 0, value ?? 0];
  return `${changeText(before, after, unit)} ${ratioText(before, after)}`.trim();
}

export function changeText(before: number, after: number, unit: string): string {
  const change = after - before;
  return change > 0 ? `+${formatValue(change, unit)}` : formatValue(change, unit);
}

export function ratioText(before: number, after: number): string {
  if (before === 0) return after === 0 ? "" : "new";
  if (after === 0) return "gone";
  const ratio = after / before;
  return ratio < 0.005 ? "× < 0.01" : `× ${ratio.toFixed(2)}`;
}
