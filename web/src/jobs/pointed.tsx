// A picture of equal parts in rows, and bars for it.

import type { ComponentChildren } from "preact";
import { Pointer } from "../views/pointer";

export function Pointed(props: {
  label: string;
  columns: number;
  rows?: number;
  height: number;
  text: (part: number) => string;
  summary: string;
  onOpen?: ((part: number) => void) | undefined;
  /** The picture, in units of its parts; the part pointed at is -1 for none. */
  children: (part: number) => ComponentChildren;
}) {
  const { columns, rows = 1 } = props;
  const place = (at: number, parts: number) =>
    Math.min(Math.max(Math.floor(parts * at), 0), parts - 1);
  return (
    <Pointer
      {...props}
      count={columns * rows}
      step={columns}
      locate={(x, y) => place(y, rows) * columns + place(x, columns)}
    >
      {(part) => (
        <svg viewBox={`0 0 ${columns} ${rows}`} preserveAspectRatio="none" aria-hidden="true">
          {props.children(part)}
        </svg>
      )}
    </Pointer>
  );
}

/** Values as bars that stand side by side; one is marked, one is pointed at, -1 for none. */
export function Bars(props: { values: ArrayLike<number>; marked: number; part: number }) {
  const values = Array.from(props.values);
  const most = Math.max(...values, 1);
  const gap = values.length > 60 ? 0 : 0.15;
  const kind = (index: number) =>
    `${index === props.marked ? "marked" : ""} ${index === props.part ? "pointed-at" : ""}`;
  return (
    <>
      {values.map((value, index) => (
        <rect
          key={index}
          class={`bar ${kind(index)}`}
          x={index + gap / 2}
          width={1 - gap}
          y={1 - value / most}
          height={value / most}
        />
      ))}
    </>
  );
}

/** Return one of every few members, so that at most some are left: of each few the largest. */
export function tallest(
  members: readonly number[],
  values: ArrayLike<number>,
  most: number,
): number[] {
  const each = Math.ceil(members.length / most);
  const found: number[] = [];
  for (let start = 0; start < members.length; start += each) {
    const group = members.slice(start, start + each);
    found.push(group.reduce((best, member) => (values[member] > values[best] ? member : best)));
  }
  return found;
}
