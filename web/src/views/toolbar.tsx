// The second line: what the graph shows; its switches are also the legend.

import type { Measure } from "../api_types";
import type { ColorBy } from "../model/address";
import { palette } from "../model/colors";
import { dark, go, measure, place, profile } from "../state";
import { words } from "./parts";

const MEASURE_GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ["time", ["ns"]],
  ["bytes", ["bytes"]],
  ["how often", ["count"]],
  ["work", ["flop"]],
];
const TREE_VIEWS = ["flame", "bottom-up", "sandwich", "compare"];
const BARE_VIEWS = ["overview", "processes", "trust", "findings", "data"];

export function Toolbar() {
  const current = profile.value;
  const { view } = place.value;
  if (!current || BARE_VIEWS.includes(view)) return null;
  const isTree = TREE_VIEWS.includes(view);
  return (
    <section class="toolbar" aria-label="What is shown">
      <label class="field">
        <span>Measure</span>
        <select
          value={measure.value?.key ?? ""}
          title={measure.value?.description}
          onChange={(event) => go({ metric: event.currentTarget.value })}
        >
          {MEASURE_GROUPS.map(([label, units]) => (
            <Measures
              key={label}
              label={label}
              measures={current.measures.filter((each) => units.includes(each.unit))}
            />
          ))}
        </select>
      </label>
      {isTree && (
        <>
          <Layers layers={current.layers} />
          <Library />
          <Choice
            label="Phase"
            name="phase"
            value={place.value.phase}
            options={[["", "all"], ...current.phases.map((each) => [each, words(each)] as const)]}
          />
          <Choice
            label="Split by"
            name="pivot"
            value={place.value.pivot}
            options={current.pivots.map(
              (each) => [each, each === "none" ? "nothing" : each] as const,
            )}
          />
          <label class="field">
            <span>Colour</span>
            <select
              value={place.value.color}
              disabled={!isColored()}
              title={isColored() ? "" : "a difference is coloured by change"}
              onChange={(event) => go({ color: event.currentTarget.value as ColorBy }, "replace")}
            >
              <option value="layer">layer</option>
              <option value="phase">phase</option>
              <option value="self">self cost</option>
            </select>
          </label>
          <div class="segmented" role="group" aria-label="Shape">
            <button
              type="button"
              aria-pressed={place.value.shape === "graph"}
              title="As a graph (v)"
              onClick={() => go({ shape: "graph" }, "replace")}
            >
              Graph
            </button>
            <button
              type="button"
              aria-pressed={place.value.shape === "tree"}
              title="As a table (v)"
              onClick={() => go({ shape: "tree" }, "replace")}
            >
              Tree
            </button>
          </div>
          <Legend />
        </>
      )}
    </section>
  );
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
  const { view, sides, shape } = place.value;
  return shape === "graph" && !(view === "compare" && sides === "difference");
}

export function toggleLayer(layer: string): void {
  const { hidden } = place.value;
  const next = hidden.includes(layer)
    ? hidden.filter((each) => each !== layer)
    : [...hidden, layer];
  go({ hidden: next });
}

function Layers(props: { layers: readonly string[] }) {
  const { hidden, color, shape } = place.value;
  const colors = palette(dark.value).layers;
  const withColor = shape === "tree" || (isColored() && color === "layer");
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
  const { library, lines } = place.value;
  return (
    <>
      <label class="check" title="Python functions of installed packages (h)">
        <input type="checkbox" checked={!library} onChange={() => go({ library: !library })} />
        hide library
      </label>
      <label class="check" title="Tell the lines of a Python function apart (l)">
        <input type="checkbox" checked={lines} onChange={() => go({ lines: !lines })} />
        lines
      </label>
    </>
  );
}

function Choice(props: {
  label: string;
  name: "phase" | "pivot";
  value: string;
  options: readonly (readonly [string, string])[];
}) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select
        value={props.value}
        onChange={(event) => go({ [props.name]: event.currentTarget.value })}
      >
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Legend() {
  const { color } = place.value;
  const colors = palette(dark.value);
  if (!isColored()) return null;
  if (color === "self") {
    return (
      <span class="legend-line">
        less
        <i
          class="ramp"
          style={{ background: `linear-gradient(90deg, ${colors.heat[0]}, ${colors.heat[1]})` }}
        />
        more self cost
      </span>
    );
  }
  if (color === "phase") {
    return (
      <span class="legend-line">
        {(profile.value?.phases ?? []).map((phase) => (
          <span key={phase}>
            <i style={{ background: colors.phases[phase] }} /> {words(phase)}
          </span>
        ))}
      </span>
    );
  }
  return null;
}
