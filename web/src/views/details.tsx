// All that is known of the selected node, and what can be done with it.

import type { FusedKernel } from "../api_types";
import type { MeasureValue, MetricValue, NodeAnswer } from "../engine/answers";
import { treeQuery } from "../model/address";
import { callTexts, formatCount, formatShare, formatValue } from "../model/format";
import { titleOf } from "../model/key_texts";
import { type Layout, nodeOfSource, pathTo } from "../model/layout";
import {
  addEdit,
  detailsOpen,
  focusOn,
  go,
  hasRanks,
  measure,
  place,
  profile,
  selected,
  tree,
} from "../state";
import { CopyButton, pathText, useCopiedPath } from "./copy";
import { laterViews } from "./later_views";
import { NodeTip, nodeName } from "./node_tip";
import { Dot, Icon, Link, SourceLink, ValueCell, words } from "./parts";
import { useAnswer } from "./use_answer";

const CALLS = "call_duration_ns.count";

interface DetailsProps {
  readonly layout: Layout;
  readonly node: number;
  readonly backwards?: boolean;
  /** Whether a box stands for several nodes of the tree, from different places. */
  readonly merged?: boolean;
}

export function Details(props: DetailsProps) {
  const { layout, node } = props;
  return (
    <aside class="details" aria-label="Selected node">
      <Icon
        label="Close"
        class="icon details-close"
        onClick={() => {
          detailsOpen.value = false;
        }}
      >
        ×
      </Icon>
      {node > 0 ? <Selected {...props} /> : <Overview layout={layout} />}
    </aside>
  );
}

function Overview(props: { layout: Layout }) {
  const { layout } = props;
  // The next tree may not have the root of a changed tree.
  // The answer holds every measure: it is asked for once, whichever is shown.
  const first = profile.value?.measures[0]?.key ?? "";
  const query = { ...treeQuery({ ...place.value, metric: "" }, first, false), source: "0" };
  const isWhole = !layout.sides && place.value.edits.length === 0;
  const asked = useAnswer("node", isWhole ? query : null);
  return (
    <>
      <h2>Whole program</h2>
      <p class="big">
        {(layout.sides ? layout.totals : [layout.total])
          .map((total) => formatValue(total, layout.unit))
          .join(" → ")}
      </p>
      <p class="muted">{measure.value?.description}</p>
      {asked.answer && <Numbers answer={asked.answer} />}
      <p class="muted hint">Click a box to zoom in, the top one to go back</p>
    </>
  );
}

function Selected(props: DetailsProps) {
  const { layout, node, backwards } = props;
  const merged = props.merged || backwards;
  const func = layout.func[node];
  const frame = layout.functions.id[func];
  const layer = layout.functions.layer[func];
  const isOne = !merged && !layout.sides;
  // The first box of a merged view is the function at all its places.
  const isFunction = merged && layout.depth[node] === 1 && frame >= 0;
  const query = isOne ? { source: String(layout.source[node]) } : { function: String(frame) };
  const { Strip } = laterViews.value;
  const asked = useAnswer("node", isOne || isFunction ? { ...tree.value, ...query } : null);
  return (
    <>
      <h2>
        <Dot layer={layer} />
        <span class="details-name">{nodeName(layout, node)}</span>
      </h2>
      <FileLink
        file={layout.functions.file[func]}
        line={layout.functions.line[func]}
        answer={asked.answer}
      />
      {frame >= 0 && !layout.sides && (
        <Actions layout={layout} node={node} merged={merged ?? false} />
      )}
      {Strip && isOne && hasRanks() && <Strip layout={layout} node={node} />}
      {asked.answer && asked.answer.name === layout.functions.name[func] ? (
        <Known answer={asked.answer} />
      ) : (
        <div class="details-tip">
          <NodeTip layout={layout} node={node} backwards={backwards ?? false} />
        </div>
      )}
      <CallPath layout={layout} node={node} backwards={backwards ?? false} merged={merged} />
    </>
  );
}

function FileLink(props: { file: string; line: number; answer: NodeAnswer | null }) {
  const { file } = props;
  if (!file) return null;
  const line = props.line || props.answer?.lines[0]?.line || 0;
  return (
    <p class="details-file">
      <SourceLink file={file} line={line} />
    </p>
  );
}

function Actions(props: { layout: Layout; node: number; merged: boolean }) {
  const { layout, node } = props;
  const func = layout.func[node];
  const frame = layout.functions.id[func];
  const name = layout.functions.name[func];
  const edit = (kind: "hide" | "collapse" | "drop") => () => addEdit(kind, frame, name);
  const sandwich = () => go({ view: "sandwich", func: frame });
  const actions: [string, string, () => void][] = [
    ["Focus", "f", () => focusOn(props.merged ? 0 : layout.source[node], frame, name)],
    ["Sandwich", "s", sandwich],
    ["Hide", "x", edit("hide")],
    ["Collapse", "c", edit("collapse")],
    ["Drop", "Delete", edit("drop")],
  ];
  return (
    <div class="actions">
      {actions.map(([label, key, act]) => (
        <button key={label} type="button" title={titleOf(key)} onClick={act}>
          {label}
        </button>
      ))}
    </div>
  );
}

function Known(props: { answer: NodeAnswer }) {
  const { answer } = props;
  const chosen = chosenOf(answer);
  return (
    <>
      <Numbers answer={answer} />
      {answer.calls && (
        <dl class="pairs">
          {callTexts(answer.calls).map(([name, value]) => (
            <>
              <dt key={name}>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
          <dt>contexts</dt>
          <dd>{formatCount(answer.contexts)}</dd>
        </dl>
      )}
      {answer.hidden > 0 && (
        <p>
          <Link onClick={() => addEdit("open", answer.id, answer.name)}>
            {formatCount(answer.hidden)} library {answer.hidden > 1 ? "frames" : "frame"} hidden
          </Link>
        </p>
      )}
      <Fused kernels={answer.fused} />
      <Own rows={answer.own} />
      <Parts
        title="By phase"
        rows={answer.phases.map((each) => [words(each.phase), each.value])}
        unit={chosen?.measure.unit ?? ""}
      />
      {answer.lines.length > 0 && (
        <Parts
          title="By line"
          rows={answer.lines.map((each) => [`line ${each.line}`, each.inclusive])}
          unit={chosen?.measure.unit ?? ""}
          onPick={(index) =>
            go({ view: "source", path: answer.file, line: answer.lines[index].line })
          }
        />
      )}
    </>
  );
}

function chosenOf(answer: NodeAnswer): MeasureValue | undefined {
  return answer.values.find((each) => each.measure.key === measure.value?.key);
}

/** Every measure; a click shows where. */
function Numbers(props: { answer: NodeAnswer }) {
  const { answer } = props;
  const chosen = chosenOf(answer);
  return (
    <table class="numbers">
      <thead>
        <tr>
          <th scope="col">measure</th>
          <th scope="col">total</th>
          <th scope="col">self</th>
          <th scope="col">share</th>
        </tr>
      </thead>
      <tbody>
        {answer.values
          .filter((each) => each === chosen || isTold(each))
          .map((each) => (
            <tr key={each.measure.key} class={each === chosen ? "chosen" : ""}>
              <th scope="row" title={each.measure.description}>
                <Link plain onClick={() => go({ metric: each.measure.key })}>
                  {each.measure.label}
                </Link>
              </th>
              <td>{formatValue(each.inclusive, each.measure.unit)}</td>
              <td>{formatValue(each.exclusive, each.measure.unit)}</td>
              <td>{formatShare(each.inclusive, each.total)}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}

/** Leave out zeros, and how often a metric was read: calls say how often the node ran. */
function isTold(value: MeasureValue): boolean {
  const { key } = value.measure;
  return value.inclusive !== 0 && (!key.endsWith(".count") || key === CALLS);
}

/** The operators and lines that torch.compile or XLA made one kernel of; a click shows the line. */
function Fused(props: { kernels: readonly FusedKernel[] }) {
  if (!props.kernels.length) return null;
  return (
    <section class="parts fused">
      <h3>Fused by the compiler</h3>
      {props.kernels.map((kernel) => (
        <>
          {kernel.operators.length > 0 && <p class="muted">{kernel.operators.join(", ")}</p>}
          {kernel.lines.map((each) => (
            <p key={`${each.file}:${each.line}`} class="details-file">
              <SourceLink file={each.file} line={each.line} />
            </p>
          ))}
          {!kernel.complete && (
            <p class="muted">
              {kernel.lines.length ? "and other lines" : "lines not known"}: INDUCTOR_PROVENANCE=1
              names all
            </p>
          )}
        </>
      ))}
    </section>
  );
}

/** Metrics that do not add up over a tree: a maximum, or a property of a kernel. */
function Own(props: { rows: readonly MetricValue[] }) {
  if (!props.rows.length) return null;
  return (
    <section class="parts">
      <h3>Not added up</h3>
      <dl class="pairs">
        {props.rows.map((row) => (
          <>
            <dt key={row.name} title={row.description}>
              {row.label}
            </dt>
            <dd>{ownText(row)}</dd>
          </>
        ))}
      </dl>
    </section>
  );
}

function ownText(row: MetricValue): string {
  if (row.largest !== null) return formatValue(row.largest, row.unit);
  const mean = formatValue(rounded(row.mean), row.unit);
  const { minimum, maximum } = row;
  if (minimum !== null && maximum !== null && minimum < maximum) {
    return `${mean} (${formatValue(minimum, row.unit)} to ${formatValue(maximum, row.unit)})`;
  }
  return row.deviation ? `${mean} ± ${formatValue(rounded(row.deviation), row.unit)}` : mean;
}

/** A mean of large whole numbers is shown as one. */
function rounded(value: number): number {
  return value >= 100 ? Math.round(value) : value;
}

function Parts(props: {
  title: string;
  rows: [string, number][];
  unit: string;
  onPick?: (index: number) => void;
}) {
  const whole = props.rows.reduce((sum, [, value]) => sum + value, 0);
  if (!props.rows.length || whole <= 0) return null;
  return (
    <section class="parts">
      <h3>{props.title}</h3>
      <table class="numbers">
        <tbody>
          {props.rows.map(([name, value], index) => (
            <tr key={name}>
              <th scope="row">
                {props.onPick ? <Link onClick={() => props.onPick?.(index)}>{name}</Link> : name}
              </th>
              <td>
                <ValueCell value={value} total={whole} unit={props.unit} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function CallPath(props: {
  layout: Layout;
  node: number;
  backwards: boolean;
  merged: boolean | undefined;
}) {
  const { layout } = props;
  const path = pathTo(layout, props.node).slice(1);
  useCopiedPath(layout, props.node);
  if (path.length < 2) return null;
  return (
    <section class="parts">
      <h3 class="path-head">
        {props.backwards ? "Called from" : "Call path"}
        <CopyButton title="Copy the path (Ctrl C)" text={() => pathText(layout, props.node)} />
      </h3>
      <ol class="path">
        {path.map((node) => (
          <li key={node}>
            <Dot layer={layout.functions.layer[layout.func[node]]} />
            <Link
              plain
              onClick={() => {
                const known = props.merged ? node : nodeOfSource(layout, layout.source[node]);
                selected.value = {
                  node: layout.source[node],
                  func: layout.functions.id[layout.func[node]],
                  layout: known,
                };
              }}
            >
              {nodeName(layout, node)}
            </Link>
          </li>
        ))}
      </ol>
    </section>
  );
}
