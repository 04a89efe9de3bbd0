// A table that is sorted by a click on a head; of many rows only those in view exist.

import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { TableRow } from "../engine/answers";
import { go, place } from "../state";
import { Empty } from "./parts";
import { useWindowed } from "./windowed";

export interface Column {
  readonly key: string;
  readonly label: string;
  readonly of: (row: TableRow) => number | string;
}

export const MAIN_COLUMNS: readonly Column[] = [
  { key: "name", label: "name", of: (row) => row.name },
  { key: "inclusive", label: "total", of: (row) => row.inclusive },
  { key: "exclusive", label: "self", of: (row) => row.exclusive },
];
export const CALL_COLUMN: Column = {
  key: "calls",
  label: "calls",
  of: (row) => row.calls?.count ?? 0,
};
const ROW_HEIGHT = 30;
/** Fewer rows all exist, so that they can be printed and found by the browser. */
const FEW = 500;

export function SortedTable(props: {
  columns: readonly Column[];
  rows: readonly TableRow[];
  row: (row: TableRow) => ComponentChildren;
  children?: ComponentChildren;
}) {
  const { columns } = props;
  const { sort } = place.value;
  const key = sort.replace(/^-/, "");
  const ascending = sort.startsWith("-");
  const rows = useMemo(() => {
    const column = columns.find((each) => each.key === key) ?? columns[2];
    return [...props.rows].sort(
      (a, b) => compare(column.of(a), column.of(b)) * (ascending ? -1 : 1),
    );
  }, [props.rows, key, ascending]);
  const box = useRef<HTMLDivElement>(null);
  const windowed = useWindowed(box, rows.length, ROW_HEIGHT);
  const { first, last } = rows.length > FEW ? windowed : { first: 0, last: rows.length };
  return (
    <div class="table-box" ref={box} tabIndex={0} role="region" aria-label="Table">
      <table class="flat">
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.key}
                scope="col"
                class={`col-${column.key}`}
                aria-sort={column.key !== key ? "none" : ascending ? "ascending" : "descending"}
              >
                <button
                  type="button"
                  onClick={() =>
                    go({ sort: column.key === key && !ascending ? `-${key}` : column.key })
                  }
                >
                  {column.label}
                  <span class="sort" aria-hidden="true">
                    {column.key === key ? (ascending ? " ↑" : " ↓") : ""}
                  </span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} />
          {rows.slice(first, last).map(props.row)}
          <Space rows={rows.length - last} />
        </tbody>
      </table>
      {rows.length === 0 && <Empty title="No row matches" />}
      {props.children}
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
