// The biggest changes of self cost between two profiles, by line, operator, module, scope or kernel.

import type { Change, TableRow } from "../engine/answers";
import { spelling } from "../model/question";
import { compared, go, place, profile, tree } from "../state";
import { CopyTable } from "./copy";
import { changeText, profileName, ratioText, sideText } from "./node_tip";
import { Empty, Subtabs, Waiting } from "./parts";
import { useRowMatches } from "./search_box";
import { type Column, RowName, SortedTable } from "./sorted_table";
import { useAnswer } from "./use_answer";

export function Changes() {
  const { by, text } = place.value;
  const known = profile.value?.tables ?? [];
  const chosen = known.includes(by) ? by : (known[0] ?? "operator");
  const [first, second] = compared.value;
  const query = {
    metric: tree.value.metric,
    by: chosen,
    files: `${first},${second}`,
    text,
  };
  const asked = useAnswer("changes", query);
  const { answer, error } = asked;
  const visit = (each: Change) => open(each.row, each.after === null ? first : second);
  useRowMatches(asked, spelling("changes", query), visit);
  if (error) return <Empty title="Nothing to compare">{error}</Empty>;
  if (!answer) return <Waiting />;
  const { unit, ratio, rows } = answer;
  const name = (each: Change) => <RowName row={each.row} onOpen={() => visit(each)} />;
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

function open(row: TableRow, file: number): void {
  if (row.file) go({ view: "source", file, path: row.file, line: row.line });
  else go({ view: "sandwich", file, func: row.id });
}
