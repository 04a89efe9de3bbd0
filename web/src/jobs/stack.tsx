// Bars of parts that lie end to end, all rows of a table on one scale, and the names of the parts.

import { dark, formatTime } from "../shared";

/** Colours that also differ in lightness, for readers who see few hues. */
const COLORS = {
  light: {
    operator: "#e3a83c",
    running: "#6a94dd",
    waiting: "#d3d3cc",
    loading: "#8c2d04",
    transfer: "#2f9384",
  },
  dark: {
    operator: "#d9a441",
    running: "#5a86d6",
    waiting: "#4a4e57",
    loading: "#ffd9c2",
    transfer: "#54b9a8",
  },
} as const;

export function timeColors() {
  return COLORS[dark.value ? "dark" : "light"];
}

/** Name, ns, colour. */
export type Part = readonly [name: string, value: number, color: string];

export function Stack(props: { parts: readonly Part[]; whole: number }) {
  const text = props.parts.map(([name, value]) => `${name} ${formatTime(value)}`).join(", ");
  return (
    <span class="phase-bar" role="img" title={text} aria-label={text}>
      {props.parts.map(([name, value, color]) => (
        <span key={name} style={{ width: `${(100 * value) / props.whole}%`, background: color }} />
      ))}
    </span>
  );
}

export function Legend(props: { title: string; parts: readonly Part[] }) {
  return (
    <p class="legend-line">
      {props.title}
      {props.parts.map(([name, , color]) => (
        <span key={name}>
          <i style={{ background: color }} /> {name}
        </span>
      ))}
    </p>
  );
}
