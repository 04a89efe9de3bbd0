// Bars of parts of a whole, and legends that lead on.

import type { ComponentChildren } from "preact";
import { formatShare, formatValue } from "../model/format";
import { Link } from "./parts";

export interface Part {
  readonly name: string;
  readonly value: number;
  readonly color: string | undefined;
  readonly show?: (() => void) | undefined;
  /** Of a switch, whether it is on. */
  readonly isPressed?: boolean;
}

/** Parts end to end; what they are, a reader hears, or sees under the mouse. */
export function Stack(props: {
  parts: readonly Part[];
  whole: number;
  unit?: string;
  label?: string;
  class?: string;
}) {
  const parts = props.parts.filter(({ value }) => value > 0);
  const text = ({ name, value }: Part) => `${name} ${formatValue(value, props.unit ?? "ns")}`;
  const all = parts.map(text).join(", ");
  return (
    <span
      class={`phase-bar ${props.class ?? ""}`}
      role="img"
      title={all}
      aria-label={props.label ?? all}
    >
      {parts.map((part) => (
        <span
          key={part.name}
          title={text(part)}
          style={{ width: `${(100 * part.value) / props.whole}%`, background: part.color }}
        />
      ))}
    </span>
  );
}

/** What colours stand for; a part with something to show is a button. */
export function Legend(props: {
  parts: readonly Omit<Part, "value">[];
  title?: ComponentChildren;
  /** What follows a name. */
  more?: (index: number) => string;
  children?: ComponentChildren;
}) {
  return (
    <span class="legend-line">
      {props.title}
      {props.parts.map(({ name, color, show, isPressed }, index) => (
        <span key={name}>
          <i style={{ background: color }} />{" "}
          {show ? (
            <Link onClick={show} aria-pressed={isPressed}>
              {name}
            </Link>
          ) : (
            name
          )}{" "}
          {props.more?.(index)}
        </span>
      ))}
      {props.children}
    </span>
  );
}

/** A bar of parts, and their names with shares. */
export function Bar(props: { label: string; parts: readonly Part[]; total: number; unit: string }) {
  const parts = props.parts.filter(({ value }) => value > 0);
  return (
    <>
      <Stack
        {...{ parts, label: props.label, unit: props.unit, whole: props.total }}
        class="overview-bar"
      />
      <Legend parts={parts} more={(index) => formatShare(parts[index].value, props.total)} />
    </>
  );
}
