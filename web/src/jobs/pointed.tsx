// A picture of equal parts in rows: the mouse and the arrow keys point at a part, and a line says what
// is there.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface PointedProps {
  /** What the picture shows, for a screen reader. */
  readonly label: string;
  readonly columns: number;
  readonly rows?: number;
  readonly height: number;
  /** What is said of a part, and of the whole while nothing is pointed at. */
  readonly text: (part: number) => string;
  readonly summary: string;
  readonly onOpen?: ((part: number) => void) | undefined;
  /** The picture, in units of its parts; the part pointed at is -1 for none. */
  readonly children: (part: number) => ComponentChildren;
}

export function Pointed(props: PointedProps) {
  const { columns, rows = 1, text, onOpen } = props;
  const [chosen, setPart] = useState(-1);
  const count = columns * rows;
  const part = chosen < count ? chosen : -1;
  const said = part < 0 ? props.summary : text(part);
  const moves: Record<string, number> = {
    ArrowLeft: part - 1,
    ArrowRight: part + 1,
    ArrowUp: part - columns,
    ArrowDown: part < 0 ? 0 : part + columns,
    Home: 0,
    End: count - 1,
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = moves[event.key];
    if (event.key === "Enter" && part >= 0) onOpen?.(part);
    else if (next === undefined) return;
    else if (next >= 0 && next < count) setPart(next);
    event.preventDefault();
  };
  const onPointerMove = (event: PointerEvent) => {
    const { left, top, width, height } = (
      event.currentTarget as HTMLElement
    ).getBoundingClientRect();
    const place = (at: number, size: number, parts: number) =>
      Math.min(Math.max(Math.floor((parts * at) / size), 0), parts - 1);
    const row = place(event.clientY - top, height, rows);
    setPart(row * columns + place(event.clientX - left, width, columns));
  };
  return (
    <div class="pointed">
      <div
        role="slider"
        tabIndex={0}
        aria-label={props.label}
        aria-valuemin={0}
        aria-valuemax={count}
        aria-valuenow={part + 1}
        aria-valuetext={said}
        style={{ height: `${props.height}px`, cursor: onOpen ? "pointer" : "crosshair" }}
        onKeyDown={onKeyDown}
        onPointerMove={onPointerMove}
        onPointerLeave={() => setPart(-1)}
        onClick={() => part >= 0 && onOpen?.(part)}
      >
        <svg viewBox={`0 0 ${columns} ${rows}`} preserveAspectRatio="none" aria-hidden="true">
          {props.children(part)}
        </svg>
      </div>
      <p class="said">{said}</p>
    </div>
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
