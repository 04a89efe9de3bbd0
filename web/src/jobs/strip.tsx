// What the selected node costs on each rank.

import { useState } from "preact/hooks";
import type { RankName } from "../api_types";
import { formatValue } from "../model/format";
import type { Layout } from "../model/layout";
import { place, tree } from "../state";
import { Subtabs } from "../views/parts";
import { useAnswer } from "../views/use_answer";
import { opener, rankText } from "./open_rank";
import { Bars, Pointed, tallest } from "./pointed";

/** More ranks than this share bars. */
const MOST_BARS = 128;
const ORDERS = ["by number", "by value"] as const;

export function Strip(props: { layout: Layout; node: number }) {
  const { layout, node } = props;
  // The path in all threads: also where the tree is split by them, or shows one.
  const edits = place.value.edits.filter(({ kind }) => kind !== "root");
  const { answer, error } = useAnswer("rank_values", {
    ...tree.value,
    pivot: "none",
    edits: edits.map(({ kind, target }) => `${kind}:${target}`).join(","),
    source: String(layout.source[node]),
    ranks: "1",
  });
  return (
    <section class="parts">
      <h3>Over ranks</h3>
      {answer?.values ? (
        <RankBars names={answer.names} values={answer.values} unit={layout.unit} />
      ) : (
        <p class="muted">{error || answer?.why}</p>
      )}
    </section>
  );
}

function RankBars(props: { names: readonly RankName[]; values: number[]; unit: string }) {
  const { names, values, unit } = props;
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
