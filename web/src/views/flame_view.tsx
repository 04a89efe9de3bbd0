// The flame graph from the root down, or from the costly functions up; with the details beside it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FlameAnswer } from "../engine/answers";
import { START } from "../model/address";
import { formatCount, formatValue } from "../model/format";
import { graft, type Layout, layOut, nodeOfSource, spanning } from "../model/layout";
import { partOf, type Range, rangeOf, WHOLE, within, withRange } from "../model/range";
import {
  addEdit,
  detailsOpen,
  focusOn,
  go,
  isSpreadKnown,
  measure,
  place,
  profile,
  selected,
  source,
  tree,
} from "../state";
import { TakeAway } from "./copy";
import { Details } from "./details";
import { choose, Drawing } from "./drawing";
import { boxOf } from "./flame_canvas";
import { useGraph } from "./graph_handle";
import { Empty, Link, Waiting } from "./parts";
import { useAnswer } from "./use_answer";

const WIDTHS = 256;

/** Return the width to ask for, rounded up, so that a small change of the window sends no question. */
export function askedWidth(): string {
  return String(Math.ceil(window.innerWidth / WIDTHS) * WIDTHS);
}

export function FlameView(props: { kind: "top_down" | "bottom_up" }) {
  const [px, setPx] = useState(askedWidth());
  useEffect(() => {
    const resized = () => setPx(askedWidth());
    window.addEventListener("resize", resized);
    return () => window.removeEventListener("resize", resized);
  }, []);
  const backwards = props.kind === "bottom_up";
  const ranks = place.value.color === "spread" && isSpreadKnown() ? "1" : "";
  const query = { ...tree.value, kind: backwards ? "bottom_up" : "", ranks, px };
  const asked = useAnswer("flame", query);
  if (asked.error) return <Empty title="Nothing to draw">{asked.error}</Empty>;
  if (!asked.answer) return <Waiting />;
  if (asked.answer.total <= 0) return <NothingMeasured />;
  return <Flame key={props.kind} answer={asked.answer} backwards={backwards} query={query} />;
}

function NothingMeasured() {
  const trust = <Link onClick={() => go({ view: "trust" })}>Trust</Link>;
  if ((profile.value?.node_count ?? 0) < 2) {
    return (
      <Empty title="Nothing was recorded">
        This profile holds no call path. {trust} says what was collected, and what was not and why.
      </Empty>
    );
  }
  return (
    <Empty title="Nothing was measured here">
      No {measure.value?.label ?? "cost"} in this part of the tree. Choose another measure or phase,
      or show more layers; {trust} says what was collected.
    </Empty>
  );
}

function Flame(props: { answer: FlameAnswer; backwards: boolean; query: Record<string, string> }) {
  const { backwards } = props;
  const answer = useRefined(props.answer, props.query, backwards);
  const { order, zoom, range } = place.value;
  const layout = useMemo(() => layOut(answer.current, order), [answer.current, order]);
  const chosen = backwards ? selected.value.layout : nodeOfSource(layout, selected.value.node);
  const current = chosen >= 0 && chosen < layout.count ? chosen : -1;
  const handle = useGraph(layout, (node) => choose(layout, node));

  const filling = backwards || zoom < 0 ? 0 : nodeOfSource(layout, zoom);
  useEffect(() => {
    if (filling < 0) answer.refine(zoom, Number(props.query.px));
    // After a reload or from a link, the details are those of what fills the width.
    else if (filling > 0 && selected.value.node < 0) choose(layout, filling);
  }, [layout, filling]);
  const zoomed = backwards
    ? {}
    : {
        shown: filling < 0 ? WHOLE : within(boxOf(layout, filling), rangeOf(range, 0)),
        onShown: (shown: Range, node: number, isMerged: boolean) => {
          const box = node < 0 ? spanning(layout, shown.from, shown.to) : node;
          const part = partOf(boxOf(layout, box), shown);
          const change = { zoom: box > 0 ? layout.source[box] : -1, range: withRange("", 0, part) };
          go(change, isMerged ? "merged" : "push");
        },
      };

  return (
    <div class="split">
      <div class="split-main">
        <Drawing
          layout={layout}
          selected={current}
          label={`Call tree ${backwards ? "by self cost, callers below" : "from the root down"}`}
          backwards={backwards}
          upward={place.value.roots === "bottom"}
          onSelect={(node) => choose(layout, node)}
          {...zoomed}
          onRest={(from, to, width) => answer.rest(layout, from, to, width)}
          onKey={(event, node) => onNodeKey(event, layout, node, backwards)}
          handle={handle}
        />
        <StatusLine layout={layout} />
      </div>
      {detailsOpen.value && <Details layout={layout} node={current} backwards={backwards} />}
    </div>
  );
}

/** Keys that do something with the selected node; `merged` boxes stand for several nodes. */
export function onNodeKey(
  event: KeyboardEvent,
  layout: Layout,
  node: number,
  merged: boolean,
): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const func = layout.func[node];
  const frame = layout.functions.id[func];
  const name = layout.functions.name[func];
  if (frame < 0 || layout.functions.kind[func] === "root") return false;
  switch (event.key) {
    case "f":
      focusOn(merged ? 0 : layout.source[node], frame, name);
      break;
    case "x":
      addEdit("hide", frame, name);
      break;
    case "c":
      addEdit("collapse", frame, name);
      break;
    case "Delete":
      addEdit("drop", frame, name);
      break;
    case "s":
      go({ view: "sandwich", func: frame });
      break;
    default:
      return false;
  }
  event.preventDefault();
  event.stopPropagation();
  return true;
}

function StatusLine(props: { layout: Layout }) {
  const { layout } = props;
  const left = layout.leftOut;
  return (
    <div class="status">
      <span>
        {measure.value?.label}: <b>{formatValue(layout.total, layout.unit)}</b>
      </span>
      <span>{formatCount(layout.count)} nodes shown</span>
      {left > 0 && (
        <span title="They are part of the boxes above them, and appear when you zoom in.">
          <i class="stub-mark" aria-hidden="true" />
          {formatCount(left)} narrower than {formatValue(layout.threshold, layout.unit)}
        </span>
      )}
      <TakeAway />
      <span class="status-hint">
        <kbd>?</kbd> keys
      </span>
    </div>
  );
}

/** Ask for finer answers where the user has zoomed in, and insert them into the coarse one. */
function useRefined(coarse: FlameAnswer, query: Record<string, string>, backwards: boolean) {
  const [answer, setAnswer] = useState(coarse);
  const base = useRef(coarse);
  const done = useRef(new Set<string>());
  const latest = useRef(answer);
  if (base.current !== coarse) {
    base.current = coarse;
    latest.current = coarse;
    done.current.clear();
    setAnswer(coarse);
  }
  const refine = (node: number, px: number) => {
    const key = `${node}/${px}`;
    const known = source.value;
    if (backwards || !known || done.current.has(key)) return;
    done.current.add(key);
    const asked = base.current;
    known.ask("flame", { ...query, root: String(node), px: String(px) }).then(
      (fine) => {
        if (base.current !== asked) return;
        // Where the node is merged into another one, that one fills the width.
        const source = fine.nodes.source[fine.above];
        if (place.value.zoom === node && source !== node) go({ zoom: source }, "replace");
        latest.current = graft(latest.current, fine);
        setAnswer(latest.current);
      },
      () => {
        done.current.delete(key);
        // A filter has left the node out.
        if (place.value.zoom === node) go({ zoom: START.zoom }, "replace");
      },
    );
  };
  const rest = (layout: Layout, from: number, to: number, width: number) => {
    if (to - from > 0.999 || layout.leftOut === 0) return;
    const node = spanning(layout, from, to);
    const wanted = (width * layout.width[node]) / (to - from);
    const px = Math.min(2 ** Math.ceil(Math.log2(Math.max(wanted, 256))), 16_384);
    refine(layout.source[node], px);
  };
  return { current: base.current === coarse ? latest.current : coarse, refine, rest };
}
