// Flat tables: what Python summed by operator, module, scope, source line or kernel.

import type { TableAnswer, TableRow } from "../engine/answers";
import { palette } from "../model/colors";
import { formatCount, formatMean, formatValue } from "../model/format";
import { spelling } from "../model/question";
import { dark, go, measure, place, profile, tree } from "../state";
import { CopyTable } from "./copy";
import { Empty, Subtabs, ValueCell, Waiting, words } from "./parts";
import { useMatches } from "./search_box";
import { CALL_COLUMN, type Column, nameColumn, SortedTable } from "./sorted_table";
import { useAnswer } from "./use_answer";

function columnsOf({ total, unit, phases }: TableAnswer): Column<TableRow>[] {
  const cost = (key: "inclusive" | "exclusive", label: string): Column<TableRow> => [
    key,
    label,
    (row) => row[key],
    (row) => <ValueCell value={row[key]} total={total} unit={unit} />,
  ];
  return [
    nameColumn(open),
    cost("inclusive", "total"),
    cost("exclusive", "self"),
    [
      "phases",
      "phases",
      (row) => row.phases[1] ?? 0,
      (row) => <PhaseBar values={row.phases} phases={phases} unit={unit} />,
    ],
    CALL_COLUMN,
    ["mean", "per call", (row) => row.calls?.mean ?? 0, ({ calls }) => calls && formatMean(calls)],
    ["contexts", "contexts", (row) => row.contexts, (row) => formatCount(row.contexts)],
  ];
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
  useMatches(() => {
    if (!asked.answer || asked.of !== spelling("table", query)) return null;
    const { match_count: count, match_value: value, total, unit, rows } = asked.answer;
    const best = [...rows].sort((a, b) => b.exclusive - a.exclusive);
    return { count, value, total, unit, known: best.length, visit: (at) => open(best[at]) };
  }, [asked]);
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
          <span class="legend-line">
            {(profile.value?.phases ?? []).map((phase) => (
              <span key={phase}>
                <i style={{ background: palette(dark.value).phases[phase] }} /> {words(phase)}
              </span>
            ))}
          </span>
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
      {answer.match_count > answer.rows.length && (
        <p class="muted note">
          {formatCount(answer.rows.length)} of {formatCount(answer.match_count)} rows, by total or
          self of {measure.value?.label}; the search finds the others.
        </p>
      )}
    </SortedTable>
  );
}

function open(row: TableRow): void {
  if (row.file) go({ view: "source", path: row.file, line: row.line });
  else go({ view: "sandwich", func: row.id });
}

function PhaseBar(props: { values: readonly number[]; phases: readonly string[]; unit: string }) {
  const { values, phases, unit } = props;
  const whole = values.reduce((sum, value) => sum + value, 0);
  if (whole <= 0) return null;
  const colors = palette(dark.value).phases;
  const text = values
    .flatMap((value, index) =>
      value > 0 ? `${words(phases[index])} ${formatValue(value, unit)}` : [],
    )
    .join(", ");
  return (
    <span class="phase-bar" title={text} role="img" aria-label={text}>
      {values.map(
        (value, index) =>
          value > 0 && (
            <span
              key={phases[index]}
              style={{ flex: `${value / whole} 1 0`, background: colors[phases[index]] }}
            />
          ),
      )}
    </span>
  );
}
