// A table of the report: Python wrote its values, the page adds links and pictures.

import type { LinePlace, TableAnswer } from "../api_types";
import { SourceLink } from "../views/parts";
import { type Column, PlainTable } from "../views/plain_table";
import { Bars } from "./pointed";

/** `before`: columns that the page adds, by the number of the row. */
export function AnswerTable(props: { table: TableAnswer; before?: readonly Column<number>[] }) {
  const { columns, rows, title } = props.table;
  const written = columns.map(
    ({ heading, is_number }, index): Column<number> => [
      heading,
      (row) => cell(rows[row][index]),
      is_number ? "number" : undefined,
    ],
  );
  const all = [...(props.before ?? []), ...written];
  return <PlainTable label={title} rows={[...rows.keys()]} columns={all} />;
}

function cell(value: unknown) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return <Small values={value} />;
  return <SourceLink {...(value as LinePlace)} />;
}

/** The shape alone; the columns beside it have the numbers. */
function Small(props: { values: readonly number[] }) {
  const { values } = props;
  return (
    <svg
      class="small"
      viewBox={`0 0 ${values.length} 1`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <Bars values={values} marked={values.indexOf(Math.max(...values))} part={-1} />
    </svg>
  );
}
