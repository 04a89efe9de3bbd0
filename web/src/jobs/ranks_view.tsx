// The ranks of a job: what each did, who was late and when, what they exchanged, and the lines that differ.

import type { ComponentChildren } from "preact";
import type { RankBins, RanksAnswer, RankTimes, TableAnswer } from "../api_types";
import { formatCount, formatTime } from "../model/format";
import { tree } from "../state";
import { Legend, type Part, Stack } from "../views/bar";
import { Empty, Link, Waiting } from "../views/parts";
import { type Column, time } from "../views/plain_table";
import { useAnswer } from "../views/use_answer";
import { AnswerTable } from "./answer_table";
import { HeatMap } from "./heat_map";
import { opener } from "./open_rank";
import { Bars, Pointed } from "./pointed";
import { timeColors } from "./time_colors";

export function RanksView() {
  const { answer, error } = useAnswer("ranks", { file: tree.value.file });
  if (error) return <Empty title="The ranks cannot be shown">{error}</Empty>;
  if (!answer) return <Waiting />;
  return (
    <div class="page scroll processes" tabIndex={0} role="region" aria-label="Ranks">
      <Section title="Ranks" more={answer.fact} note={answer.note}>
        <Times answer={answer} />
      </Section>
      <TableSection table={answer.late}>
        <p class="muted">
          Time that a rank made the others wait, by twentieths of its collectives. A full row is a
          rank, or its machine, that is always late; a full column is something that the program
          does now and then.
        </p>
        <HeatMap rows={answer.late_over_time} />
      </TableSection>
      <TableSection table={answer.exchanges} />
      {answer.lines.rows.length > 0 && <TableSection table={answer.lines} />}
    </div>
  );
}

function Section(props: {
  title: string;
  more?: string;
  note: string;
  children?: ComponentChildren;
}) {
  return (
    <section>
      <h2>
        {props.title} <span class="muted">{props.more}</span>
      </h2>
      <p class="muted">{props.note}</p>
      {props.children}
    </section>
  );
}

/** A table of the report; without rows, only why. */
function TableSection(props: { table: TableAnswer; children?: ComponentChildren }) {
  const { table } = props;
  return (
    <Section title={table.title} note={table.note}>
      {table.rows.length > 0 && (
        <>
          {props.children}
          <AnswerTable table={table} />
        </>
      )}
    </Section>
  );
}

/** What each rank did, and its collectives, on one scale. */
function Times(props: { answer: RanksAnswer }) {
  const { names, rows, parts, bins, collectives_note } = props.answer;
  const { operator, running, waiting, loading, transfer } = timeColors();
  const colors = [operator, running, waiting, loading];
  const done = (row: RankTimes): Part[] =>
    row.parts_ns.map((value, index) => ({ name: parts[index], value, color: colors[index] }));
  const exchanged = (row: RankTimes): Part[] => [
    { name: "transfer", value: row.collective_ns - row.waited_ns, color: transfer },
    { name: "waiting for other ranks", value: row.waited_ns, color: waiting },
  ];
  const sum = (row: RankTimes) => row.parts_ns.reduce((all, value) => all + value, 0);
  const whole = Math.max(...rows.map((row) => Math.max(sum(row), row.collective_ns)), 1);
  const hasCollectives = rows.some((row) => row.collective_ns >= 0);
  const nameOf = new Map(names.map((name) => [name.rank, name]));
  const columns: Column<number>[] = [
    ["which", (row) => rows[row].name && <span class="badge">{rows[row].name}</span>],
    [
      "rank",
      (row) => <Rank of={rows[row].rank} open={openOf(nameOf.get(rows[row].rank))} />,
      "number",
    ],
    [
      "time",
      (row) => (rows[row].parts_ns.length ? <Stack parts={done(rows[row])} whole={whole} /> : ""),
    ],
    ["of it loading", (row) => time(rows[row].parts_ns.at(-1) ?? -1), "number"],
    [
      "collectives",
      (row) =>
        rows[row].collective_ns < 0 ? "" : <Stack parts={exchanged(rows[row])} whole={whole} />,
    ],
    ["in collectives", (row) => time(rows[row].collective_ns), "number"],
    ["waited", (row) => time(rows[row].waited_ns), "number"],
  ];
  return (
    <>
      {bins && <Histogram {...bins} />}
      <Legend title="time:" parts={done(rows[0])} />
      {hasCollectives && (
        <>
          <Legend
            title="collectives, which may run beside other work:"
            parts={exchanged(rows[0])}
          />
          {collectives_note && <p class="muted">{collectives_note}</p>}
        </>
      )}
      <AnswerTable table={props.answer.times} before={columns} />
    </>
  );
}

function openOf(name: Parameters<typeof opener>[0] | undefined) {
  return name && opener(name);
}

function Rank(props: { of: number; open: (() => void) | undefined }) {
  if (props.of < 0) return null;
  if (!props.open) return <>{props.of}</>;
  return (
    <Link title="Open its flame graph" onClick={props.open}>
      {props.of}
    </Link>
  );
}

function Histogram({ least_ns, most_ns, bins }: RankBins) {
  const edge = (bin: number) => formatTime(least_ns + ((most_ns - least_ns) * bin) / bins.length);
  const text = (bin: number) =>
    `${formatCount(bins[bin])} ranks worked ${edge(bin)} to ${edge(bin + 1)}`;
  return (
    <div class="histogram">
      <h3>How many ranks worked how long</h3>
      <Pointed
        label="ranks by working time"
        columns={bins.length}
        height={72}
        text={text}
        summary={`most: ${text(bins.indexOf(Math.max(...bins)))}`}
      >
        {(part) => <Bars values={bins} marked={-1} part={part} />}
      </Pointed>
      <p class="legend-line scale">
        <span>{edge(0)}</span>
        <span>{edge(bins.length)}</span>
      </p>
    </div>
  );
}
