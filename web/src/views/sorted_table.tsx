// A table that is sorted by a click on a head; of many rows only those in view exist.

import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { TableAnswer, TableRow } from "../engine/answers";
import { formatCount } from "../model/format";
import { go, place } from "../state";
import { Dot, Empty, Link, shorten } from "./parts";
import { useWindowed } from "./windowed";

/** Its key in the address, its head, what sorts the rows, and what a cell shows. */
export type Column<Row> = readonly [
  key: string,
  label: string,
  of: (row: Row) => number | string,
  cell: (row: Row) => ComponentChildren,
];

/** What tables of functions and groups have in common. */
export function nameColumn(onOpen: (row: TableRow) => void): Column<TableRow> {
  return [
    "name",
    "name",
    (row) => row.name,
    (row) => <RowName row={row} onOpen={() => onOpen(row)} />,
  ];
}

/** The columns of total and self cost. */
export function costColumns(cell: (value: number) => ComponentChildren): Column<TableRow>[] {
  return (["inclusive", "exclusive"] as const).map((key, at) => [
    key,
    ["total", "self"][at],
    (row) => row[key],
    (row) => cell(row[key]),
  ]);
}

export const CALL_COLUMN: Column<TableRow> = [
  "calls",
  "calls",
  (row) => row.calls?.count ?? 0,
  (row) => row.calls && formatCount(row.calls.count),
];

/** As in the style. */
const ROW_HEIGHT = 26;

/** The first column names the rows; at first the column "exclusive" sorts them. */
export function SortedTable<Row>(props: {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  isChosen?: (row: Row) => boolean;
  children?: ComponentChildren;
}) {
  const { columns } = props;
  const { sort } = place.value;
  const key = sort.replace(/^-/, "");
  const ascending = sort.startsWith("-");
  const column =
    columns.find((each) => each[0] === key) ?? columns.find((each) => each[0] === "exclusive");
  const rows = useMemo(
    () =>
      column
        ? [...props.rows].sort((a, b) => compare(column[2](a), column[2](b)) * (ascending ? -1 : 1))
        : props.rows,
    [props.rows, column?.[0], ascending],
  );
  const box = useRef<HTMLDivElement>(null);
  const { first, last } = useWindowed(box, rows.length, ROW_HEIGHT);
  return (
    <div class="table-box" ref={box} tabIndex={0} role="region" aria-label={props.label}>
      <table class="flat">
        <thead>
          <tr>
            {columns.map((each) => (
              <th
                key={each[0]}
                scope="col"
                class={`col-${each[0]}`}
                aria-sort={each !== column ? "none" : ascending ? "ascending" : "descending"}
              >
                <button
                  type="button"
                  onClick={() => go({ sort: (each === column && !ascending ? "-" : "") + each[0] })}
                >
                  {each[1]}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} />
          {rows.slice(first, last).map((row, index) => (
            <tr key={first + index} aria-current={props.isChosen?.(row) ? "true" : undefined}>
              {columns.map(([key, , , cell], at) =>
                at ? (
                  <td key={key} class={`col-${key}`}>
                    {cell(row)}
                  </td>
                ) : (
                  <th key={key} scope="row">
                    {cell(row)}
                  </th>
                ),
              )}
            </tr>
          ))}
          <Space rows={rows.length - last} />
        </tbody>
      </table>
      {rows.length === 0 && <Empty title="No row matches" />}
      {props.children}
    </div>
  );
}

/** How many rows are not here. */
export function Others(props: { answer: TableAnswer }) {
  const { match_count, rows } = props.answer;
  if (match_count <= rows.length) return null;
  return (
    <p class="muted note">
      {formatCount(rows.length)} of {formatCount(match_count)} rows, the costliest; the search finds
      the others.
    </p>
  );
}

/** The name of a function, or of a line with its function; a click opens it. */
export function RowName(props: { row: TableRow; onOpen: () => void }) {
  const { row } = props;
  const place = row.file && row.line ? `${row.file}:${row.line}` : "";
  return (
    <div class="cell-name">
      <Dot layer={row.layer} />
      <Link plain title={place || row.name} onClick={props.onOpen}>
        {place && `${shorten(row.file)}:${row.line} `}
        <span class={place ? "muted" : ""}>{row.name}</span>
      </Link>
    </div>
  );
}

function Space(props: { rows: number }) {
  if (props.rows <= 0) return null;
  return <tr style={{ height: `${props.rows * ROW_HEIGHT}px` }} />;
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === "string" || typeof b === "string") return String(a).localeCompare(String(b));
  return b - a;
}
