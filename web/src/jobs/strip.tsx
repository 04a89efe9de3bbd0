// What the selected node costs on each rank.

import { useState } from "preact/hooks";
import type { Layout } from "../model/layout";
import { formatValue, measure, place, Subtabs, tree, usePromise } from "../shared";
import type { Ranks } from "./by_rank";
import { opener, rankText } from "./open_rank";
import { Bars, Pointed, tallest } from "./pointed";
import { ranksOf } from "./ranks_of";

/** More ranks than this share bars. */
const MOST_BARS = 128;
const ORDERS = ["by number", "by value"] as const;

export function Strip(props: { layout: Layout; node: number }) {
  const { layout, node } = props;
  const chosen = layout.source[node];
  // The path in all threads: also where the tree is split by them, or shows one.
  const edits = place.value.edits.filter(({ kind }) => kind !== "root");
  const query = {
    ...tree.value,
    pivot: "none",
    edits: edits.map(({ kind, target }) => `${kind}:${target}`).join(","),
  };
  const known = usePromise(JSON.stringify([query, chosen]), async () => {
    const { view, ranks, found } = await ranksOf(query);
    return { ranks, values: found?.at(view.nodeOf(chosen % view.profile.nodes)) ?? null };
  });
  if (!known) return null;
  const { value, error } = known;
  return (
    <section class="parts">
      <h3>Over ranks</h3>
      {value?.values ? (
        <RankBars ranks={value.ranks} values={value.values} unit={layout.unit} />
      ) : (
        <p class="muted">{value ? whyUnknown(value.ranks) : error}</p>
      )}
    </section>
  );
}

function whyUnknown(ranks: Ranks): string {
  const isKept = ranks.header.metrics.includes(measure.value?.key ?? "");
  if (!isKept) return "Values of single ranks are not kept for this measure.";
  if (place.value.phase) return "Values of single ranks are kept for all phases together.";
  const paths = ranks.array("node").length;
  return `Values of single ranks are kept at the ${paths} largest call paths; this one is smaller.`;
}

function RankBars(props: { ranks: Ranks; values: Float64Array; unit: string }) {
  const { values, unit } = props;
  const { names } = props.ranks.header;
  const [order, setOrder] = useState<string>(ORDERS[0]);
  const ranks = Array.from(values, (_, rank) => rank);
  const byValue = [...ranks].sort((a, b) => values[a] - values[b]);
  const shown = order === ORDERS[0] ? ranks : byValue;
  // Of ranks that share a bar, the one with the largest value.
  const each = Math.ceil(shown.length / MOST_BARS);
  const bars = tallest(shown, values, MOST_BARS);
  const most = byValue[byValue.length - 1];
  const value = (rank: number) => formatValue(Math.round(values[rank]), unit);
  const text = (bar: number) => {
    const shared = Math.min(each, shown.length - bar * each);
    const more = shared > 1 ? `, the most of ${shared} ranks` : "";
    return `${rankText(names[bars[bar]])}: ${value(bars[bar])}${more}`;
  };
  const whose = (rank: number) => `${value(rank)} (${rankText(names[rank])})`;
  const mean = ranks.reduce((sum, rank) => sum + values[rank], 0) / ranks.length;
  return (
    <>
      <Pointed
        label={`ranks ${order}, Enter opens one`}
        columns={bars.length}
        height={56}
        summary={`most ${whose(most)}, mean ${formatValue(Math.round(mean), unit)}, least ${whose(byValue[0])}`}
        text={text}
        onOpen={opener(names[0]) && ((bar) => opener(names[bars[bar]])?.())}
      >
        {(part) => (
          <Bars values={bars.map((rank) => values[rank])} marked={bars.indexOf(most)} part={part} />
        )}
      </Pointed>
      {names.length > 2 && (
        <div class="subtabs tight">
          <Subtabs
            label="Order"
            names={ORDERS}
            chosen={order}
            text={(name) => name}
            onChoose={setOrder}
          />
        </div>
      )}
    </>
  );
}
