// How far lines, modules and operators are from what the machine can do: a plot, and a table of the same.

import type { RooflineChart, RooflinePoint } from "../api_types";
import { formatCount, formatShare } from "../model/format";
import { go, place, showNode, tree } from "../state";
import { Legend } from "../views/bar";
import { Empty, SourceLink, Subtabs, Waiting } from "../views/parts";
import { type Column, PlainTable, time } from "../views/plain_table";
import { useAnswer } from "../views/use_answer";
import { colorOf, Picture } from "./picture";
import { aSecond } from "./placing";
import { intensityText, nameOf, rate } from "./words";

export function RooflineView() {
  const { answer, error } = useAnswer("roofline", { file: tree.value.file });
  if (error) return <Empty title="The roofline cannot be shown">{error}</Empty>;
  if (!answer) return <Waiting />;
  if (!answer.charts.length) return <Empty title="No roofline">{answer.missing}</Empty>;
  return (
    <div class="page scroll processes" tabIndex={0} role="region" aria-label="Roofline">
      {answer.charts.map((chart) => (
        <Chart key={chart.title} chart={chart} kinds={answer.kinds} />
      ))}
      {answer.missing && <p class="muted">{answer.missing}</p>}
    </div>
  );
}

function Chart(props: { chart: RooflineChart; kinds: readonly string[] }) {
  const { chart, kinds } = props;
  const { groups } = chart;
  const group = groups.find(({ by }) => by === place.value.points) ?? groups[0];
  const { by, points, count } = group;
  const shown = [...new Set(points.map(({ kind }) => kind))].sort((a, b) => a - b);
  const hasLaunches = points.some(({ limit }) => limit === "launch");
  return (
    <section>
      <h2>
        Roofline <span class="muted">of {chart.title}</span>
      </h2>
      {chart.notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
      <div class="subtabs tight">
        <Subtabs
          label="Points"
          names={groups.map((each) => each.by)}
          chosen={by}
          text={(name) => `by ${name}`}
          onChoose={(points) => go({ points })}
        />
        {count > points.length && (
          <span class="muted">
            {formatCount(points.length)} of {formatCount(count)}, most time first
          </span>
        )}
      </div>
      <Legend parts={shown.map((kind) => ({ name: kinds[kind], color: colorOf(kind) }))}>
        {hasLaunches && (
          <span>
            <i class="launch-mark" /> launch cost: calls of a few microseconds
          </span>
        )}
      </Legend>
      <Picture key={by} chart={chart} points={points} onOpen={({ node }) => open(node, chart)} />
      <PlainTable label={`Roofline by ${by}`} rows={points} columns={columns(by, chart)} />
    </section>
  );
}

/** Show a node in the flame graph, by a measure of which it has a box. */
function open(node: number, { metric }: RooflineChart): void {
  if (metric) go({ metric }, "replace");
  showNode(node);
}

const LIMITS: Readonly<Record<string, string>> = {
  compute: "computing",
  memory: "memory",
  launch: "launch cost",
  unknown: "-",
};

/** The columns of the report's tables, and what limits a row. */
function columns(by: string, chart: RooflineChart): Column<RooflinePoint>[] {
  const isKnown = chart.bytes_per_second > 0 || chart.ceilings.length > 0;
  return [
    [
      by,
      (point) => (
        <button
          type="button"
          class="link clip"
          title={`Show ${nameOf(point)} in the flame graph`}
          onClick={() => open(point.node, chart)}
        >
          {nameOf(point)}
        </button>
      ),
    ],
    ["limit", ({ limit }) => (isKnown || limit === "launch" ? LIMITS[limit] : "")],
    ["time", (point) => time(point.time_ns), "number"],
    ["share", (point) => formatShare(point.time_ns, chart.time_ns), "number"],
    ["of peak", ({ of_peak }) => (isKnown ? percent(of_peak) : ""), "number"],
    [
      "FLOP/s",
      (point) => (point.flops && point.time_ns ? rate(aSecond(point.flops, point), "FLOP/s") : "-"),
      "number",
    ],
    [
      "bytes/s",
      (point) => (point.bytes && point.time_ns ? rate(aSecond(point.bytes, point), "B/s") : "-"),
      "number",
    ],
    ["flop/byte", (point) => (point.bytes && point.flops ? intensityText(point) : "-"), "number"],
    ["calls", ({ calls }) => formatCount(calls), "number"],
    [
      "source",
      ({ name, place: { file, line } }) =>
        file ? (
          <SourceLink file={file} line={line}>
            {name}
          </SourceLink>
        ) : (
          ""
        ),
    ],
  ];
}

function percent(share: number | null): string {
  return share === null ? "-" : formatShare(share, 1);
}
