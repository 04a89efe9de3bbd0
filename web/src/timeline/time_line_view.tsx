// The time line: which steps were slow, and what each thread and stream did in one of them.

import { useMemo, useState } from "preact/hooks";
import type { KeptStep, SpanNode, StepAnswer } from "../api_types";
import { openMore } from "../drop";
import { palette } from "../model/colors";
import { formatTime } from "../model/format";
import { dark, go, place, profile, showNode, tree } from "../state";
import { layerFills } from "../views/coloring";
import { Empty, Link, Select, SourceLink, Waiting } from "../views/parts";
import { useAnswer } from "../views/use_answer";
import type { Chosen } from "./painter";
import { type Placed, placed } from "./placing";
import { StepCanvas } from "./step_canvas";
import { StepStrip } from "./step_strip";

export function TimeLineView() {
  const { file, step } = place.value;
  const query = { file: tree.value.file };
  const { answer, error } = useAnswer("timeline", query);
  if (error) return <Empty title="The time line cannot be shown">{error}</Empty>;
  if (!answer) return <Waiting />;
  const slowest = [...answer.steps].sort((a, b) => b.duration_ns - a.duration_ns);
  const chosen = answer.steps.find((each) => each.number === step) ?? slowest[0];
  if (!chosen) return <Empty title="No step was kept">{NONE}</Empty>;
  const onChoose = (each: KeptStep) => go({ step: each.number });
  return (
    <div class="page">
      <StepStrip answer={answer} chosen={chosen.number} onChoose={onChoose} onBrush={showSteps} />
      <div class="subtabs">
        <Select
          label="Step"
          value={chosen.number}
          options={slowest.map(({ number, duration_ns, why }) => [
            number,
            `${number}: ${formatTime(duration_ns)}, ${why}`,
          ])}
          onChoose={(number) => go({ step: Number(number) })}
        />
        <span>{chosen.cause}</span>
      </div>
      {chosen.paths.length > 0 && (
        <details>
          <summary>Call paths with most more time than usual</summary>
          <ol>
            {chosen.paths.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ol>
        </details>
      )}
      <OneStep key={`${file} ${chosen.number}`} number={chosen.number} query={query} />
    </div>
  );
}

/** Open the windows of these steps as a profile of their own, which all views show. */
function showSteps(first: number, last: number): void {
  const { file } = place.value;
  const name = profile.value?.name ?? "";
  const question = `steps?file=${file}&first=${first}&last=${last}`;
  void openMore(
    question,
    `steps ${first} to ${last}`,
    `${name} --window ${first}-${last}`,
    "flame",
  );
}

const NONE =
  "Steps are kept in runs that have steps, unless recorded with --no-timeline; of a merged profile, report --steps has them.";

function OneStep(props: { number: number; query: { file: string } }) {
  const name = String(props.number);
  const { answer: value, error } = useAnswer("step", { ...props.query, name });
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const lanes = useMemo(() => value && placed(value), [value]);
  if (error) return <Empty title="This step cannot be shown">{error}</Empty>;
  if (!value || !lanes) return <Waiting />;
  const colors = palette(dark.value);
  const scene = {
    placed: lanes,
    fills: fillsOf(value),
    lineFill: colors.layers.python,
    matches: matching(value),
    palette: colors,
    chosen,
  };
  const late = lanes.lanes.filter((lane) => lane.knownFrom > 0);
  return (
    <>
      <StepCanvas
        scene={scene}
        label={`Step ${name} by thread and stream; W and S zoom, A and D move, arrow keys go from span to span`}
        tip={(at) => spanText(lanes, at)}
        onChoose={setChosen}
      />
      <div class="status time-details" aria-live="polite">
        {chosen ? <Details placed={lanes} at={chosen} /> : <span class="muted">{HOW}</span>}
        {late.length > 0 && (
          <span class="muted">
            The step was longer than the buffer:{" "}
            {late
              .map((lane) => `${lane.name} is known from ${formatTime(lane.knownFrom)} on`)
              .join(", ")}
            .
          </span>
        )}
      </div>
    </>
  );
}

const HOW =
  "Click a span for details. Lines reach from their first to their last operator; Python itself is sampled, " +
  "so it has no spans. Drag or A, D: move; Ctrl wheel or W, S: zoom; 0: whole step.";

function nodeOf(placed: Placed, at: Chosen): SpanNode {
  return placed.step.nodes[placed.lanes[at.lane].node[at.span]];
}

function spanText(placed: Placed, at: Chosen): string {
  const lane = placed.lanes[at.lane];
  const duration = lane.end[at.span] - lane.begin[at.span];
  return `${nodeOf(placed, at).name}, ${formatTime(duration)}, from ${formatTime(lane.begin[at.span])}`;
}

function Details(props: { placed: Placed; at: Chosen }) {
  const { placed, at } = props;
  const lane = placed.lanes[at.lane];
  const { name, place: line, phase, modules, node } = nodeOf(placed, at);
  return (
    <>
      <strong>{name}</strong>
      <span>{formatTime(lane.end[at.span] - lane.begin[at.span])}</span>
      <span>self {formatTime(lane.own[at.span])}</span>
      <span>from {formatTime(lane.begin[at.span])}</span>
      <span>{lane.name}</span>
      {phase && <span>{phase.replaceAll("_", " ")}</span>}
      {modules && <span class="clip">{modules}</span>}
      {line.file && <SourceLink {...line} />}
      <Link onClick={() => showNode(node)}>Show in the flame graph</Link>
    </>
  );
}

/** Colours as in the graph: by phase where it has them, else by layer, shaded by name. */
function fillsOf(step: StepAnswer): string[] {
  const colors = palette(dark.value);
  if (place.value.color === "phase") {
    return step.nodes.map(({ phase }) => colors.phases[phase] ?? colors.phases.none);
  }
  const shaded = layerFills(dark.value);
  return step.nodes.map(({ layer, name }) => shaded(layer, name));
}

/** Whether each node's name or line contains the text that is searched for. */
function matching(step: StepAnswer): Uint8Array | null {
  const wanted = place.value.text.toLowerCase();
  if (!wanted) return null;
  return Uint8Array.from(step.nodes, ({ name, place: { shown } }) =>
    `${name} ${shown}`.toLowerCase().includes(wanted) ? 1 : 0,
  );
}
