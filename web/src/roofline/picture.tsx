// The plot: points under the roofs, both axes logarithmic. The mouse and the arrow keys point at one.

import type { RooflineChart, RooflinePoint } from "../api_types";
import { palette } from "../model/colors";
import { formatCount, formatShare } from "../model/format";
import { dark } from "../state";
import { Pointer } from "../views/pointer";
import {
  type Axis,
  HEIGHT,
  type Line,
  type Placed,
  type Placing,
  place,
  pointAt,
  WIDTH,
} from "./placing";
import { decadeText, rate, wordsOf } from "./words";

/** Half the width of the text at the ridge. */
const HALF_TEXT = 110;
/** The layers whose colours kinds of operators have, in the order of `KINDS` in Python. */
const LAYER_OF_KIND = ["operator", "compiled", "scope", "python", "module", "gpu", "root"];

export function colorOf(kind: number): string {
  const { layers } = palette(dark.value);
  return layers[LAYER_OF_KIND[kind]] ?? layers.root;
}

export function Picture(props: {
  chart: RooflineChart;
  points: readonly RooflinePoint[];
  onOpen: (point: RooflinePoint) => void;
}) {
  const { chart, points, onOpen } = props;
  const placing = place(chart, points);
  const { placed } = placing;
  const summary = summaryOf(placing);
  if (!placed.length) return <p class="said">{summary}</p>;
  return (
    <Pointer
      label="Roofline; arrow keys go through the points, most time first, Enter opens one"
      class="roofline"
      count={placed.length}
      locate={(x, y) => pointAt(placed, x * WIDTH, y * HEIGHT)}
      text={(at) => wordsOf(placed[at].point, chart)}
      summary={summary}
      onOpen={(at) => onOpen(placed[at].point)}
    >
      {(at) => (
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
          <Axes placing={placing} />
          <Roofs placing={placing} chart={chart} />
          {placed.map((each, index) => (
            <Mark key={index} of={each} isPointed={index === at} />
          ))}
        </svg>
      )}
    </Pointer>
  );
}

function summaryOf({ placed, left }: Placing): string {
  const unplaced = left.length
    ? `; ${formatCount(left.length)} only in the table, because their bytes or times are not known`
    : "";
  return `${formatCount(placed.length)} points, the area is time${unplaced}`;
}

function Mark(props: { of: Placed; isPointed: boolean }) {
  const { point, x, y, radius } = props.of;
  const isLaunch = point.limit === "launch";
  return (
    <circle
      class={`mark ${isLaunch ? "launch" : ""} ${props.isPointed ? "pointed-at" : ""}`}
      cx={x}
      cy={y}
      r={radius}
      style={{ fill: isLaunch ? "transparent" : colorOf(point.kind) }}
    />
  );
}

function Axes(props: { placing: Placing }) {
  const { intensity, rate: rates, bandwidth, strip } = props.placing;
  const left = intensity.ticks[0].at;
  const right = intensity.ticks[intensity.ticks.length - 1].at;
  const bottom = rates.ticks[0].at;
  return (
    <>
      {intensity.ticks.map(({ at, value }) => (
        <g key={value}>
          <Straight class="grid" line={{ from: [at, rates.at(rates.to)], to: [at, bottom] }} />
          <text x={at} y={bottom + 16} text-anchor="middle">
            {decade(value)}
          </text>
        </g>
      ))}
      <text x={(left + right) / 2} y={HEIGHT - 8} text-anchor="middle">
        flop/byte
      </text>
      <Upright axis={rates} left={left} right={right} unit="FLOP/s" />
      {bandwidth && (
        <>
          <Upright axis={bandwidth} left={strip[0]} right={strip[1]} unit="B/s" />
          <text x={(strip[0] + strip[1]) / 2} y={HEIGHT - 8} text-anchor="middle">
            moving data only
          </text>
        </>
      )}
    </>
  );
}

function Upright(props: { axis: Axis; left: number; right: number; unit: string }) {
  const { axis, left, right, unit } = props;
  // Of many decades, a label for each second one.
  const each = axis.ticks.length > 9 ? 2 : 1;
  return (
    <>
      {axis.ticks.map(({ at, value }, index) => (
        <g key={value}>
          <Straight class="grid" line={{ from: [left, at], to: [right, at] }} />
          {index % each === 0 && (
            <text x={left - 6} y={at + 4} text-anchor="end">
              {decadeText(value, unit)}
            </text>
          )}
        </g>
      ))}
    </>
  );
}

function Roofs(props: { placing: Placing; chart: RooflineChart }) {
  const { memory, ceilings, ridge, intensity, rate: rates, bandwidth, strip } = props.placing;
  const { bytes_per_second, step_flops_per_second: step, mfu } = props.chart;
  const left = intensity.ticks[0].at;
  const bottom = rates.ticks[0].at;
  const meeting = ceilings[0]?.from[0] ?? left;
  return (
    <>
      {memory && (
        <>
          <Straight class="roof" line={memory} />
          <Along line={memory} text={rate(bytes_per_second, "B/s")} />
        </>
      )}
      {bandwidth && bytes_per_second > 0 && (
        <Straight
          class="roof"
          line={{
            from: [strip[0], bandwidth.at(bytes_per_second)],
            to: [strip[1], bandwidth.at(bytes_per_second)],
          }}
        />
      )}
      {ceilings.map((ceiling) => (
        <g key={ceiling.rate}>
          <Straight class="roof" line={ceiling} />
          <text class="roof-text" x={ceiling.label[0]} y={ceiling.label[1]} text-anchor="end">
            {ceiling.types.join(", ")} {rate(ceiling.rate, "FLOP/s")}
          </text>
        </g>
      ))}
      {ridge > 0 && ceilings.length > 0 && (
        <>
          <Straight
            class="ridge"
            line={{ from: [meeting, ceilings[0].from[1]], to: [meeting, bottom] }}
          />
          <text x={inside(meeting, left, WIDTH)} y={bottom - 6} text-anchor="middle">
            memory ← {Number(ridge.toPrecision(3))} flop/byte → computing
          </text>
        </>
      )}
      {step > 0 && (
        <>
          <Straight
            class="step"
            line={{
              from: [left, rates.at(step)],
              to: [intensity.at(intensity.to), rates.at(step)],
            }}
          />
          <text x={left + 6} y={rates.at(step) - 5}>
            whole step {rate(step, "FLOP/s")}
            {mfu !== null && `, MFU ${formatShare(mfu, 1)}`}
          </text>
        </>
      )}
    </>
  );
}

/** Return where a text has its middle, so that it does not leave the plot. */
function inside(at: number, left: number, right: number): number {
  return Math.min(Math.max(at, left + HALF_TEXT), right - HALF_TEXT);
}

/** A text along the beginning of a line. */
function Along(props: { line: Line; text: string }) {
  const [x, y] = props.line.from;
  const [right, top] = props.line.to;
  const angle = (Math.atan2(top - y, right - x) * 180) / Math.PI;
  return (
    <text class="roof-text" transform={`translate(${x},${y}) rotate(${angle})`} x={10} y={-6}>
      {props.text}
    </text>
  );
}

function Straight(props: { class: string; line: Line }) {
  const { from, to } = props.line;
  return <line class={props.class} x1={from[0]} y1={from[1]} x2={to[0]} y2={to[1]} />;
}

/** A power of ten on the axis of intensities. */
function decade(value: number): string {
  return value >= 1e5 || value < 1e-3
    ? value.toExponential(0).replace("+", "")
    : String(Number(value.toPrecision(1)));
}
