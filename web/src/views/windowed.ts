// Rows of a fixed height: of many, only those in view exist.

import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { signal } from "../signals";

const SPARE = 12;
/** Fewer rows all exist, so that the browser finds them. */
const FEW = 100;
/** Whether all rows exist, to be printed or copied. */
export const isWhole = signal(false);
for (const [event, value] of [
  ["beforeprint", true],
  ["afterprint", false],
] as const) {
  window.addEventListener(event, () => {
    isWhole.value = value;
  });
}

export function useWindowed(box: RefObject<HTMLElement | null>, count: number, height: number) {
  const [range, setRange] = useState({ first: 0, last: Math.min(count, 60) });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const update = () => {
      const first = Math.max(Math.floor(element.scrollTop / height) - SPARE, 0);
      const shown = Math.ceil(element.clientHeight / height) + 2 * SPARE;
      setRange((before) =>
        before.first === first && before.last === Math.min(first + shown, count)
          ? before
          : { first, last: Math.min(first + shown, count) },
      );
    };
    update();
    element.addEventListener("scroll", update, { passive: true });
    const observer = new ResizeObserver(update);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", update);
      observer.disconnect();
    };
  }, [count, height]);
  return isWhole.value || count <= FEW ? { first: 0, last: count } : range;
}
