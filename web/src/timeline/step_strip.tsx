// The times of all steps from the first to the last, and where the kept ones are.

import type { KeptStep, StepPart, TimeLineAnswer } from "../api_types";
import { formatCount, formatTime } from "../model/format";

const WIDTH = 1000;
const HEIGHT = 56;
const MARK = 8;

export function StepStrip(props: {
  answer: TimeLineAnswer;
  chosen: number;
  onChoose: (step: KeptStep) => void;
}) {
  const { parts, steps, rule } = props.answer;
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const longest = Math.max(...parts.map((part) => part.maximum_ns), 1);
  // Step 1 has no time.
  const left = (number: number) => ((number - 1.5) / Math.max(count, 1)) * 100;
  return (
    <section class="time-strip" aria-label="Steps">
      <p class="muted">
        {formatCount(count)} steps of {rangeText(parts)}
        {rule && `; ${rule}`}. Each bar: the mean of consecutive steps, and above it the longest.
      </p>
      <div class="time-bars">
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {bars(parts, count, longest)}
        </svg>
        {steps.map((step) => (
          <button
            key={step.number}
            type="button"
            class={step.why.includes("slow") ? "time-mark slow" : "time-mark"}
            style={{ left: `calc(${left(step.number)}% - ${MARK}px)` }}
            aria-pressed={step.number === props.chosen}
            aria-label={`step ${step.number}`}
            title={titleOf(step)}
            onClick={() => props.onChoose(step)}
          />
        ))}
      </div>
    </section>
  );
}

function titleOf(step: KeptStep): string {
  return `step ${step.number}: ${formatTime(step.duration_ns)}, ${step.why}`;
}

function rangeText(parts: readonly StepPart[]): string {
  const least = Math.min(...parts.map((part) => part.minimum_ns));
  return `${formatTime(least)} to ${formatTime(Math.max(...parts.map((part) => part.maximum_ns)))}`;
}

function bars(parts: readonly StepPart[], count: number, longest: number) {
  let before = 0;
  return parts.map((part, index) => {
    const x = (before / count) * WIDTH;
    const width = Math.max((part.count / count) * WIDTH - 0.5, 0.5);
    before += part.count;
    const tall = (ns: number) => (ns / longest) * HEIGHT;
    const mean = tall(part.total_ns / part.count);
    return (
      <g key={index}>
        <rect
          class="time-most"
          x={x}
          width={width}
          y={HEIGHT - tall(part.maximum_ns)}
          height={tall(part.maximum_ns)}
        />
        <rect class="bar" x={x} width={width} y={HEIGHT - mean} height={mean} />
      </g>
    );
  });
}
