// A picture of parts: the mouse and the arrow keys point at a part, and a line says what is there.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export function Pointer(props: {
  /** What the picture shows, for a screen reader. */
  label: string;
  class?: string;
  count: number;
  /** How far the arrow keys up and down lead. */
  step?: number;
  height?: number;
  /** The part at a place of the picture, each from 0 to 1; -1 for none. */
  locate: (x: number, y: number) => number;
  /** What is said of a part, and of the whole while nothing is pointed at. */
  text: (part: number) => string;
  summary: string;
  onOpen?: ((part: number) => void) | undefined;
  /** The picture; the part pointed at is -1 for none. */
  children: (part: number) => ComponentChildren;
}) {
  const { count, step = 1, onOpen } = props;
  const [chosen, setPart] = useState(-1);
  const part = chosen < count ? chosen : -1;
  const said = part < 0 ? props.summary : props.text(part);
  const moves: Record<string, number> = {
    ArrowLeft: part - 1,
    ArrowRight: part + 1,
    ArrowUp: part - step,
    ArrowDown: part < 0 ? 0 : part + step,
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
  const under = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    return props.locate(x, (event.clientY - box.top) / box.height);
  };
  return (
    <div class={`pointed ${props.class ?? ""}`}>
      <div
        role="slider"
        tabIndex={0}
        aria-label={props.label}
        aria-valuemin={0}
        aria-valuemax={count}
        aria-valuenow={part + 1}
        aria-valuetext={said}
        style={{
          height: props.height && `${props.height}px`,
          cursor: onOpen && part >= 0 ? "pointer" : "default",
        }}
        onKeyDown={onKeyDown}
        onPointerMove={(event) => setPart(under(event))}
        onPointerLeave={() => setPart(-1)}
        onClick={(event) => {
          const found = under(event);
          if (found >= 0) onOpen?.(found);
        }}
      >
        {props.children(part)}
      </div>
      <p class="said">{said}</p>
    </div>
  );
}
