// The box beside the mouse.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

const GAP = 14;
const EDGE = 4;

/**
 * Stands on the side of the row where its children are not; below the lowest rows of a graph that grows upward
 * the window has no room, so there it stands at the window's edge, where the details are.
 */
export function Tooltip(props: {
  x: number;
  /** Where the row begins and ends. */
  above: number;
  below: number;
  upward: boolean;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const { width, height } = element.getBoundingClientRect();
    const lowest = window.innerHeight - EDGE - height;
    const edge = window.innerWidth - EDGE - width;
    const isLow = props.upward && props.below + EDGE > lowest;
    const right = props.x + GAP + width < window.innerWidth;
    const beside = right ? props.x + GAP : Math.max(props.x - GAP - width, EDGE);
    const left = isLow ? edge : beside;
    const above = props.above - EDGE - height;
    const below = Math.min(props.below + EDGE, lowest);
    const top = props.upward ? below : Math.max(above, EDGE);
    element.style.transform = `translate(${left}px, ${top}px)`;
  });
  return (
    <div class="tooltip" ref={box} role="presentation">
      {props.children}
    </div>
  );
}
