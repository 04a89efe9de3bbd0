// Flat tables: what Python summed by operator, module, scope, source line or kernel.

import type { TableAnswer, TableRow } from "../engine/answers";
import { palette } from "../model/colors";
import { formatCount, formatTime, formatValue } from "../model/format";
import { spelling } from "../model/question";
import { dark, go, measure, place, profile, tree } from "../state";
import { CopyTable } from "./copy";
import { Dot, Empty, Subtabs, shorten, ValueCell, Waiting, words } from "./parts";
import { useMatches } from "./search_box";
import { CALL_COLUMN, type Column, MAIN_COLUMNS, SortedTable } from "./sorted_table";
import { useAnswer } from "./use_answer";

const COLUMNS: readonly Column[] = [
  ...MAIN_COLUMNS,
  { key: "phases", label: "phases", of: (row) => row.phases[1] ?? 0 },
  CALL_COLUMN,
  { key: "mean", label: "per call", of: (row) => row.calls?.mean ?? 0 },
  { key: "contexts", label: "contexts", of: (row) => row.contexts },
];

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
    <SortedTable
      columns={COLUMNS}
      rows={answer.rows}
      row={(row) => <Row key={row.id} row={row} answer={answer} />}
    >
      {answer.match_count > answer.rows.length && (
        <p class="muted note">
          {formatCount(answer.rows.length)} of {formatCount(answer.match_count)} rows, by total or
          self of {measure.value?.label}; the search finds the others.
        </p>
      )}
    </SortedTable>
  );
}

function Row(props: { row: TableRow; answer: TableAnswer }) {
  const { row, answer } = props;
  const calls = row.calls;
  const spread =
    calls && calls.deviation !== null && calls.mean > 0
      ? ` ± ${Math.round((100 * calls.deviation) / calls.mean)} %`
      : "";
  return (
    <tr>
      <th scope="row">
        <div class="cell-name">
          <Dot layer={row.layer} />
          <button
            type="button"
            class="link plain clip"
            title={row.file ? `${row.file}:${row.line}` : row.name}
            onClick={() => open(row)}
          >
            {row.file ? `${shorten(row.file)}:${row.line}` : row.name}
            {row.file && <span class="muted"> {row.name}</span>}
          </button>
        </div>
      </th>
      <td>
        <ValueCell value={row.inclusive} total={answer.total} unit={answer.unit} />
      </td>
      <td>
        <ValueCell value={row.exclusive} total={answer.total} unit={answer.unit} />
      </td>
      <td>
        <PhaseBar row={row} answer={answer} />
      </td>
      <td class="number">{calls ? formatCount(calls.count) : ""}</td>
      <td class="number">
        {calls ? formatTime(calls.mean) : ""}
        <span class="muted">{spread}</span>
      </td>
      <td class="number">{formatCount(row.contexts)}</td>
    </tr>
  );
}

function open(row: TableRow): void {
  if (row.file) go({ view: "source", path: row.file, line: row.line });
  else go({ view: "sandwich", func: row.id });
}

function PhaseBar(props: { row: TableRow; answer: TableAnswer }) {
  const { row, answer } = props;
  const whole = row.phases.reduce((sum, value) => sum + value, 0);
  if (whole <= 0) return null;
  const colors = palette(dark.value).phases;
  const text = row.phases
    .map((value, index) => [answer.phases[index], value] as const)
    .filter(([, value]) => value > 0)
    .map(([phase, value]) => `${words(phase)} ${formatValue(value, answer.unit)}`)
    .join(", ");
  return (
    <span class="phase-bar" title={text} role="img" aria-label={text}>
      {row.phases.map(
        (value, index) =>
          value > 0 && (
            <span
              key={answer.phases[index]}
              style={{ flex: `${value / whole} 1 0`, background: colors[answer.phases[index]] }}
            />
          ),
      )}
    </span>
  );
}
