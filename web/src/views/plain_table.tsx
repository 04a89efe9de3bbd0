// A table that leaves out columns in which nothing is known.

import type { ComponentChildren } from "preact";
import { formatTime } from "../model/format";

/** Title, cell, and whether it holds a number; a cell without content is "". */
export type Column<Row> = readonly [
  title: string,
  cell: (row: Row) => ComponentChildren,
  kind?: "number" | undefined,
];

export function PlainTable<Row>(props: {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
}) {
  const { rows } = props;
  const columns = props.columns.filter(([, cell]) => rows.some((row) => cell(row) !== ""));
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={props.label}>
      <table class="pairs-table">
        <thead>
          <tr>
            {columns.map(([title, , kind], index) => (
              <th key={index} scope="col" class={kind}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map(([, cell, kind], at) => (
                <td key={at} class={kind}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A time as the report writes it: "-" for none, "" for one that is not known. */
export function time(ns: number): string {
  return ns < 0 ? "" : ns ? formatTime(ns) : "-";
}
