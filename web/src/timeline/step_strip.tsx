// The times of all steps from the first to the last, where the kept ones are, and a brush for a part of them.

import { useState } from "preact/hooks";
import type { KeptStep, StepPart, StepWindow, TimeLineAnswer } from "../api_types";
import { formatCount, formatTime } from "../model/format";
import { Select } from "../views/parts";

const WIDTH = 1000;
const HEIGHT = 56;
const MARK = 8;

type Range = readonly [first: number, last: number];

export function StepStrip(props: {
  answer: TimeLineAnswer;
  chosen: number;
  onChoose: (step: KeptStep) => void;
  onBrush: (first: number, last: number) => void;
}) {
  const { parts, steps, rule, windows } = props.answer;
  const [brush, setBrush] = useState<Range | null>(null);
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  if (!count) return null;
  const longest = Math.max(...parts.map((part) => part.maximum_ns), 1);
  // Step 1 has no time.
  const left = (number: number) => ((number - 2) / count) * 100;
  const stepAt = (event: PointerEvent) => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - left) / width, 0), 1);
    return Math.min(Math.floor(part * count), count - 1) + 2;
  };
  const below = brush && windowsOf(windows, brush);
  return (
    <section class="time-strip" aria-label="Steps">
      <p class="muted">
        {formatCount(count)} steps of {rangeText(parts)}
        {rule && `; ${rule}`}. Each bar: the mean of consecutive steps, and above it the longest.
      </p>
      <div
        class="time-bars"
        onPointerDown={(event) => {
          if (event.target instanceof HTMLButtonElement || !windows.length) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setBrush([stepAt(event), stepAt(event)]);
        }}
        onPointerMove={(event) => brush && setBrush([brush[0], stepAt(event)])}
        onPointerCancel={() => setBrush(null)}
        onPointerUp={() => {
          setBrush(null);
          if (below?.length && brush?.[0] !== brush?.[1]) props.onBrush(...rangeOf(below));
        }}
      >
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {(below ?? windows.filter(({ shown }) => shown)).map(({ first, last }) => (
            <rect
              key={first}
              class="time-window"
              x={(left(first) * WIDTH) / 100}
              width={((last + 1 - first) * WIDTH) / count}
              height={HEIGHT}
            />
          ))}
          {bars(parts, count, longest)}
        </svg>
        {steps.map((step) => (
          <button
            key={step.number}
            type="button"
            class={step.why.includes("slow") ? "time-mark slow" : "time-mark"}
            style={{ left: `calc(${left(step.number + 0.5)}% - ${MARK}px)` }}
            aria-pressed={step.number === props.chosen}
            aria-label={`step ${step.number}`}
            title={titleOf(step)}
            onClick={() => props.onChoose(step)}
          />
        ))}
      </div>
      {windows.length > 0 && <Brush windows={windows} below={below} onBrush={props.onBrush} />}
    </section>
  );
}

/** What is below the brush, and the same choice by keyboard. */
function Brush(props: {
  windows: readonly StepWindow[];
  below: readonly StepWindow[] | null;
  onBrush: (first: number, last: number) => void;
}) {
  const { windows, below } = props;
  const shown = windows.filter((each) => each.shown);
  const [chosen, setChosen] = useState<Range>(rangeOf(shown.length ? shown : windows));
  const [first, last] = below?.length ? rangeOf(below) : chosen;
  const choose = (from: number, to: number) => setChosen(rangeOf(windowsOf(windows, [from, to])));
  return (
    <div class="subtabs">
      <Select
        label="Steps"
        value={first}
        options={windows.map((each) => [each.first, `${each.first}, ${each.kind}`])}
        onChoose={(from) => choose(Number(from), Math.max(Number(from), last))}
      />
      <Select
        label="to"
        value={last}
        options={windows.map((each) => [each.last, String(each.last)])}
        onChoose={(to) => choose(Math.min(first, Number(to)), Number(to))}
      />
      <button type="button" onClick={() => props.onBrush(first, last)}>
        Show only these
      </button>
    </div>
  );
}

/** The windows that have steps of a range, in which way it may go. */
function windowsOf(windows: readonly StepWindow[], [from, to]: Range): StepWindow[] {
  return windows.filter(
    ({ first, last }) => first <= Math.max(from, to) && last >= Math.min(from, to),
  );
}

function rangeOf(windows: readonly StepWindow[]): Range {
  return [windows[0].first, windows[windows.length - 1].last];
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
