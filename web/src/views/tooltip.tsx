// The box beside the mouse.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

const GAP = 14;

export function Tooltip(props: { x: number; y: number; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const { width, height } = element.getBoundingClientRect();
    const right = props.x + GAP + width < window.innerWidth;
    const below = props.y + GAP + height < window.innerHeight;
    const left = right ? props.x + GAP : Math.max(props.x - GAP - width, 4);
    const top = below ? props.y + GAP : Math.max(props.y - GAP - height, 4);
    element.style.transform = `translate(${left}px, ${top}px)`;
  });
  return (
    <div class="tooltip" ref={box} role="presentation">
      {props.children}
    </div>
  );
}
