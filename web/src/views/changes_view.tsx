// The biggest changes of self cost between two profiles, by line, operator, module, scope or kernel.

import { useMemo } from "preact/hooks";
import type { TableRow } from "../engine/answers";
import { type Change, changes, shownChanges, uniformRatio } from "../model/changes";
import { about, compared, go, place, profile, tree } from "../state";
import { CopyTable } from "./copy";
import { changeText, profileName, ratioText, sideText } from "./node_tip";
import { Empty, Subtabs, Waiting } from "./parts";
import { useMatches } from "./search_box";
import { type Column, RowName, SortedTable } from "./sorted_table";
import { useAnswer } from "./use_answer";

export function Changes() {
  const { by, text } = place.value;
  const known = profile.value?.tables ?? [];
  const chosen = known.includes(by) ? by : (known[0] ?? "operator");
  const [first, second] = compared.value;
  const query = { metric: tree.value.metric, by: chosen, all: "1" };
  const base = useAnswer("table", { ...query, file: String(first) });
  const other = useAnswer("table", { ...query, file: String(second) });
  const all = useMemo(
    () => base.answer && other.answer && changes(base.answer, other.answer, nameOf),
    [base.answer, other.answer],
  );
  const rows = useMemo(() => shownChanges(all ?? [], text), [all, text]);
  useMatches(() => {
    if (!base.answer) return null;
    const { unit, total } = base.answer;
    const value = rows.reduce((sum, { before }) => sum + (before ?? 0), 0);
    const visit = (at: number) => open(rows[at].row, rows[at].after === null ? first : second);
    return { count: rows.length, value, total, unit, known: rows.length, visit };
  }, [rows]);
  const error = base.error || other.error;
  if (error) return <Empty title="Nothing to compare">{error}</Empty>;
  if (!all || !base.answer) return <Waiting />;
  const { unit } = base.answer;
  const ratio = uniformRatio(all);
  const name = (each: Change) => (
    <RowName row={each.row} onOpen={() => open(each.row, each.after === null ? first : second)} />
  );
  const side = (value: number | null) => sideText(value, unit);
  const columns: Column<Change>[] = [
    ["name", "self", ({ row }) => row.name, name],
    ["before", profileName(0), ({ before }) => before ?? 0, ({ before }) => side(before)],
    ["after", profileName(1), ({ after }) => after ?? 0, ({ after }) => side(after)],
    [
      "exclusive",
      "change",
      ({ change }) => Math.abs(change),
      ({ change }) => changeText(0, change, unit),
    ],
    [
      "ratio",
      "ratio",
      ({ before, after }) => (after ?? 0) / (before ?? 0),
      ({ before, after }) => ratioText(before ?? 0, after ?? 0),
    ],
    [
      "scaled",
      "normalised",
      ({ scaled }) => Math.abs(scaled),
      ({ scaled }) => changeText(0, Math.round(scaled), unit),
    ],
  ];
  return (
    <>
      <div class="subtabs">
        <Subtabs
          label="Group by"
          names={known}
          chosen={chosen}
          text={(name) => `by ${name}`}
          onChoose={(by) => go({ by })}
        />
        <CopyTable />
      </div>
      {ratio !== null && <p class="note">Everything × {ratio.toFixed(2)}: machine or load?</p>}
      <SortedTable label="Biggest changes" columns={columns} rows={rows} />
    </>
  );
}

/** What a row is of: its file is known relative to the folder of its run. */
function nameOf(row: TableRow, side: number): string {
  const folder = about.value?.profiles[compared.value[side]]?.cwd ?? "";
  const file = row.file.startsWith(`${folder}/`) ? row.file.slice(folder.length + 1) : row.file;
  return `${row.layer}\n${row.name}\n${file}\n${row.line}`;
}

function open(row: TableRow, file: number): void {
  if (row.file) go({ view: "source", file, path: row.file, line: row.line });
  else go({ view: "sandwich", file, func: row.id });
}
