// Flat tables: what Python summed by operator, module, scope, source line or kernel.

import type { TableAnswer, TableRow } from "../engine/answers";
import { palette } from "../model/colors";
import { formatCount, formatMean } from "../model/format";
import { spelling } from "../model/question";
import { dark, go, place, profile, tree } from "../state";
import { Legend, Stack } from "./bar";
import { CopyTable } from "./copy";
import { Empty, Subtabs, ValueCell, Waiting, words } from "./parts";
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

/** Columns in which something is known: imported profiles may have neither phases nor calls. */
function columnsOf({ total, unit, phases, rows }: TableAnswer): Column<TableRow>[] {
  const hasPhases = rows.some((row) => row.phases.filter(Boolean).length > 1);
  const hasCalls = rows.some(({ calls }) => calls);
  const all: (Column<TableRow> | false)[] = [
    nameColumn(open),
    ...costColumns((value) => <ValueCell value={value} total={total} unit={unit} />),
    hasPhases && [
      "phases",
      "phases",
      (row) => row.phases[1] ?? 0,
      (row) => <PhaseBar values={row.phases} phases={phases} unit={unit} />,
    ],
    hasCalls && CALL_COLUMN,
    hasCalls && [
      "mean",
      "per call",
      (row) => row.calls?.mean ?? 0,
      ({ calls }) => calls && formatMean(calls),
    ],
    ["contexts", "contexts", (row) => row.contexts, (row) => formatCount(row.contexts)],
  ];
  return all.filter((each) => each !== false);
}

export function TableView() {
  const { by, text } = place.value;
  const known = profile.value?.tables ?? [];
  const chosen = known.includes(by) ? by : (known[0] ?? "operator");
  const query = {
    file: tree.value.file,
    metric: tree.value.metric,
    by: chosen === "operator" ? "" : chosen,
    text,
  };
  const asked = useAnswer("table", query);
  useRowMatches(asked, spelling("table", query), open, (a, b) => b.exclusive - a.exclusive);
  return (
    <div class="page">
      <div class="subtabs">
        <Subtabs
          label="Group by"
          names={known}
          chosen={chosen}
          text={(name) => `by ${name}`}
          onChoose={(by) => go({ by })}
        />
        <span class="muted subtabs-note">
          <Legend
            parts={(profile.value?.phases ?? []).map((phase) => ({
              name: words(phase),
              color: palette(dark.value).phases[phase],
            }))}
          />
          <span title="Layers, phase, library and edits are the graph's: a table counts everything.">
            of the whole program
          </span>
          <CopyTable />
        </span>
      </div>
      {asked.error ? (
        <Empty title="No table">{asked.error}</Empty>
      ) : asked.answer ? (
        <Rows answer={asked.answer} />
      ) : (
        <Waiting />
      )}
    </div>
  );
}

function Rows(props: { answer: TableAnswer }) {
  const { answer } = props;
  return (
    <SortedTable label="Table" columns={columnsOf(answer)} rows={answer.rows}>
      <Others answer={answer} />
    </SortedTable>
  );
}

function open(row: TableRow): void {
  if (row.file) go({ view: "source", path: row.file, line: row.line });
  else go({ view: "sandwich", func: row.id });
}

function PhaseBar(props: { values: readonly number[]; phases: readonly string[]; unit: string }) {
  const whole = props.values.reduce((sum, value) => sum + value, 0);
  const parts = props.phases.map((name, index) => ({
    name: words(name),
    value: props.values[index],
    color: palette(dark.value).phases[name],
  }));
  return whole > 0 && <Stack parts={parts} whole={whole} unit={props.unit} />;
}
