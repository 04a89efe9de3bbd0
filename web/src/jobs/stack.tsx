// Bars of parts that lie end to end, all rows of a table on one scale, and the names of the parts.

import { formatTime } from "../shared";

/** Name, ns, colour. */
export type Part = readonly [name: string, value: number, color: string];

export function Stack(props: { parts: readonly Part[]; whole: number }) {
  const text = props.parts.map(([name, value]) => `${name} ${formatTime(value)}`).join(", ");
  return (
    <span class="phase-bar" role="img" title={text} aria-label={text}>
      {props.parts.map(([name, value, color]) => (
        <span
          key={name}
          style={{ width: `${(100 * value) / props.whole}%`, background: color }}
        />
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
