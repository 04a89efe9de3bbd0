// Ranks by time: how long each made the others wait, in each part of the run.

import type { LateRank } from "../api_types";
import { mix } from "../model/colors";
import { formatShare, formatTime } from "../model/format";
import { dark } from "../state";
import { Pointed } from "./pointed";

const ROW = 18;
const MOST_HEIGHT = 480;
const MOST_LABELS = 24;
// One hue from faint to strong, which all readers can tell apart.
const SCALE = {
  light: ["#f0efea", "#b03a06"],
  dark: ["#292b30", "#ffab6e"],
} as const;

export function HeatMap(props: { rows: readonly LateRank[] }) {
  const { rows } = props;
  const columns = rows[0].over_time_ns.length;
  const most = Math.max(...rows.flatMap((row) => row.over_time_ns), 1);
  const [from, to] = SCALE[dark.value ? "dark" : "light"];
  const height = Math.min(ROW * rows.length, MOST_HEIGHT);
  const each = Math.ceil(rows.length / MOST_LABELS);
  const percent = (column: number) => formatShare(column, columns).replace(".0", "");
  const text = (part: number) => {
    const { rank, over_time_ns } = rows[Math.floor(part / columns)];
    const column = part % columns;
    const caused = over_time_ns[column];
    const when = `${percent(column)} to ${percent(column + 1)} of its collectives`;
    const what = caused ? `made others wait ${formatTime(caused)}` : "made nobody wait";
    return `rank ${rank}, ${when}: ${what}`;
  };
  const [row, column] = largest(rows, most);
  return (
    <div class="heat">
      <div class="heat-labels" style={{ height: `${height}px` }} aria-hidden="true">
        {rows.map(({ rank }, index) => (
          <span key={rank} style={{ top: `${(100 * (index + 0.5)) / rows.length}%` }}>
            {index % each === 0 ? rank : ""}
          </span>
        ))}
      </div>
      <Pointed
        label="ranks by parts of the run"
        columns={columns}
        rows={rows.length}
        height={height}
        text={text}
        summary={`most: ${text(row * columns + column)}`}
      >
        {(part) =>
          rows.flatMap(({ over_time_ns }, row) =>
            over_time_ns.map((caused, column) => (
              <rect
                key={row * columns + column}
                x={column}
                y={row}
                width={0.96}
                height={0.94}
                style={{ fill: mix(from, to, caused / most) }}
                class={part === row * columns + column ? "pointed-at" : ""}
              />
            )),
          )
        }
      </Pointed>
      <p class="legend-line scale">
        <span>start</span>
        <span>
          0 <i class="ramp" style={{ background: `linear-gradient(90deg, ${from}, ${to})` }} />{" "}
          {formatTime(most)}
        </span>
        <span>end</span>
      </p>
    </div>
  );
}

function largest(rows: readonly LateRank[], most: number): [number, number] {
  const row = Math.max(
    rows.findIndex(({ over_time_ns }) => over_time_ns.includes(most)),
    0,
  );
  return [row, Math.max(rows[row].over_time_ns.indexOf(most), 0)];
}
