// The second line: what the graph shows; its switches are also the legend.

import { useState } from "preact/hooks";
import type { Measure } from "../api_types";
import type { ColorBy, Place } from "../model/address";
import { palette } from "../model/colors";
import { titleOf } from "../model/key_texts";
import { PIVOTS } from "../model/question";
import {
  asTable,
  byLine,
  dark,
  go,
  isSpreadKnown,
  measure,
  place,
  profile,
  showAs,
  toggleLines,
} from "../state";
import { Legend } from "./bar";
import { Check, Select, words } from "./parts";

const MEASURE_GROUPS = ["Time", "GPU", "Waiting", "Memory", "Counts", "Work"];
const COLORS = [
  ["layer", "layer"],
  ["phase", "phase"],
  ["self", "self cost"],
] as const;
/** What the ends of a scale of colours stand for. */
const RAMPS: Partial<Record<ColorBy, readonly [string, string]>> = {
  self: ["less", "more self cost"],
  spread: ["equal on all ranks", "one has twice the mean; no colour: not known"],
};
const SHAPES = [
  ["graph", "Graph"],
  ["tree", "Tree"],
] as const;
const ORDERS = [
  ["program", "program"],
  ["size", "largest first"],
] as const;
const ROOTS = [
  ["top", "top"],
  ["bottom", "bottom"],
] as const;
const UPWARD_VIEWS = ["flame", "bottom-up"];
const TREE_VIEWS = ["flame", "bottom-up", "sandwich", "compare"];
const BARE_VIEWS = ["overview", "processes", "ranks", "trust", "findings", "data", "timeline"];

export function Toolbar() {
  // On a phone most switches are folded.
  const [open, setOpen] = useState(false);
  const current = profile.value;
  const { view, sides } = place.value;
  if (!current || BARE_VIEWS.includes(view)) return null;
  const isTree =
    TREE_VIEWS.includes(view) && !(view === "compare" && ["changes", "sources"].includes(sides));
  return (
    <section class="toolbar" aria-label="What is shown">
      <Select
        label="Measure"
        value={measure.value?.key ?? ""}
        title={measure.value?.description}
        onChoose={(metric) => go({ metric })}
      >
        {MEASURE_GROUPS.map((group) => (
          <Measures
            key={group}
            label={group}
            measures={current.measures.filter((each) => each.group === group)}
          />
        ))}
      </Select>
      {isTree && (
        <>
          <button type="button" class="more" aria-expanded={open} onClick={() => setOpen(!open)}>
            Switches
          </button>
          <div class={open ? "switches open" : "switches"}>
            <Layers layers={current.layers} />
            <Library />
            <Select
              label="Phase"
              value={place.value.phase}
              options={[["", "all"], ...current.phases.map((each) => [each, words(each)] as const)]}
              onChoose={(phase) => go({ phase })}
            />
            <Select
              label="Split by"
              value={place.value.pivot}
              options={PIVOTS.map((each) => [each, each === "none" ? "nothing" : each] as const)}
              onChoose={(pivot) => go({ pivot })}
            />
            <Select
              label="Colour"
              value={shownColor()}
              disabled={!isColored()}
              title={isColored() ? "" : "a difference is coloured by change"}
              options={isSpreadKnown() ? [...COLORS, ["spread", "spread over ranks"]] : COLORS}
              onChoose={(color) => chooseColor(color as ColorBy)}
            />
            <Select
              label="Order"
              value={place.value.order}
              title={titleOf("t")}
              options={ORDERS}
              onChoose={(order) => go({ order: order as Place["order"] })}
            />
            {UPWARD_VIEWS.includes(view) && !asTable.value && (
              <Select
                label="Roots"
                value={place.value.roots}
                options={ROOTS}
                onChoose={(roots) => go({ roots: roots as Place["roots"] })}
              />
            )}
            <div class="segmented" role="group" aria-label="Shape">
              {SHAPES.map(([shape, name]) => (
                <button
                  key={shape}
                  type="button"
                  aria-pressed={asTable.value === (shape === "tree")}
                  title={titleOf("v")}
                  onClick={() => showAs(shape)}
                >
                  {name}
                </button>
              ))}
            </div>
            <Scale />
          </div>
        </>
      )}
    </section>
  );
}

/** Where boxes have no spread, they have the colour of their layer. */
function shownColor(): ColorBy {
  const { color } = place.value;
  return color === "spread" && !isSpreadKnown() ? "layer" : color;
}

/** The spread of a path needs all ranks in one place, so ranks and threads are not told apart. */
function chooseColor(color: ColorBy): void {
  go(color === "spread" ? { color, pivot: "none" } : { color });
}

function Measures(props: { label: string; measures: readonly Measure[] }) {
  if (!props.measures.length) return null;
  return (
    <optgroup label={props.label}>
      {props.measures.map((each) => (
        <option key={each.key} value={each.key}>
          {each.label}
        </option>
      ))}
    </optgroup>
  );
}

/** Return whether the user chooses the colour of boxes: in a difference the change does. */
function isColored(): boolean {
  const { view, sides } = place.value;
  return !asTable.value && !(view === "compare" && sides === "difference");
}

export function toggleLayer(layer: string): void {
  const { hidden } = place.value;
  const next = hidden.includes(layer)
    ? hidden.filter((each) => each !== layer)
    : [...hidden, layer];
  go({ hidden: next });
}

function Layers(props: { layers: readonly string[] }) {
  const { hidden } = place.value;
  const colors = palette(dark.value).layers;
  const withColor = asTable.value || (isColored() && shownColor() === "layer");
  return (
    <div class="layers" role="group" aria-label="Layers">
      {props.layers.map((layer) => {
        const shown = !hidden.includes(layer);
        return (
          <button
            key={layer}
            type="button"
            class="chip"
            aria-pressed={shown}
            title={`${shown ? "Leave out" : "Show"} the ${layer} layer`}
            onClick={() => toggleLayer(layer)}
          >
            {withColor && <i style={{ background: colors[layer] }} />}
            {layer}
          </button>
        );
      })}
    </div>
  );
}

function Library() {
  const { library } = place.value;
  return (
    <>
      <Check
        text="hide library"
        title={titleOf("h")}
        checked={!library}
        onCheck={(hidden) => go({ library: !hidden })}
      />
      <Check text="lines" title={titleOf("l")} checked={byLine.value} onCheck={toggleLines} />
    </>
  );
}

function Scale() {
  const color = shownColor();
  const colors = palette(dark.value);
  if (!isColored()) return null;
  const ramp = RAMPS[color];
  if (ramp) {
    return (
      <span class="legend-line">
        {ramp[0]}
        <i
          class="ramp"
          style={{ background: `linear-gradient(90deg, ${colors.heat[0]}, ${colors.heat[1]})` }}
        />
        {ramp[1]}
      </span>
    );
  }
  if (color !== "phase") return null;
  const parts = (profile.value?.phases ?? []).map((phase) => ({
    name: words(phase),
    color: colors.phases[phase],
    isPressed: place.value.phase === phase,
    show: () => go({ phase: place.value.phase === phase ? "" : phase }),
  }));
  return <Legend parts={parts} />;
}
