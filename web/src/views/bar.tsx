// A bar of parts of a whole, with a legend that leads on.

import { formatShare, formatValue } from "../model/format";
import { Link } from "./parts";

export interface Part {
  readonly name: string;
  readonly value: number;
  readonly color: string;
  readonly show?: (() => void) | undefined;
}

/** A bar of parts, and their names with shares; a part with something to show is a button. */
export function Bar(props: { label: string; parts: readonly Part[]; total: number; unit: string }) {
  const parts = props.parts.filter((part) => part.value > 0);
  const title = (part: Part) => `${part.name}: ${formatValue(part.value, props.unit)}`;
  return (
    <>
      <div class="phase-bar overview-bar" role="img" aria-label={props.label}>
        {parts.map((part) => (
          <span
            key={part.name}
            title={title(part)}
            style={{ width: `${(100 * part.value) / props.total}%`, background: part.color }}
          />
        ))}
      </div>
      <p class="legend-line">
        {parts.map((part) => (
          <span key={part.name}>
            <i style={{ background: part.color }} />{" "}
            {part.show ? (
              <Link title={title(part)} onClick={part.show}>
                {part.name}
              </Link>
            ) : (
              part.name
            )}{" "}
            {formatShare(part.value, props.total)}
          </span>
        ))}
      </p>
    </>
  );
}
