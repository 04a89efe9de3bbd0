// The search box: marks what matches while one types, and goes from one match to the next, the costliest first.

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { View } from "../model/address";
import { formatCount, formatShare, formatValue } from "../model/format";
import { titleOf } from "../model/key_texts";
import { type Layout, nodeOfSource } from "../model/layout";
import { spelling } from "../model/question";
import { found, matching } from "../model/search";
import { signal } from "../signals";
import { go, measure, place, selected, tree } from "../state";
import { graph } from "./graph_handle";
import { Icon } from "./parts";
import { useAnswer } from "./use_answer";

const DELAY_MS = 60;

/** What matches, in the order in which one visits it. */
export interface Matches {
  readonly count: number;
  /** What all matches cost together, of the whole. */
  readonly value: number;
  readonly total: number;
  readonly unit: string;
  /** The first of them can be visited. */
  readonly known: number;
  visit(at: number): void;
}

/** The matches of a view that does not show the tree. */
const ofView = signal<Matches | null>(null);
const current = signal<Matches | null>(null);
/** The match that was visited last; -1 for none. */
const at = signal(-1);

/** Search in what a view shows, instead of in the tree. */
export function useMatches(make: () => Matches | null, inputs: readonly unknown[]): void {
  useEffect(() => {
    ofView.value = make();
    return () => {
      ofView.value = null;
    };
  }, inputs);
}

export function Search() {
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  // Enter, before the matches are known.
  const isAwaited = useRef(false);
  const { text } = place.value;
  // While it has the focus, the box owns its text: what is searched for may be older.
  useEffect(() => {
    const box = input.current;
    if (box && document.activeElement !== box) box.value = text;
  }, [text]);
  const matches = useFound();
  useEffect(() => {
    at.value = -1;
    current.value = matches;
    if (isAwaited.current && matches) goToMatch(1);
    if (matches) isAwaited.current = false;
  }, [matches]);
  const search = () => {
    window.clearTimeout(timer.current);
    go({ text: input.current?.value ?? "" }, "merged");
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const inField = event.target instanceof HTMLInputElement;
      if (
        (event.key === "f" && (event.ctrlKey || event.metaKey)) ||
        (event.key === "/" && !inField)
      ) {
        event.preventDefault();
        input.current?.focus();
        input.current?.select();
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  return (
    <div class={text ? "search busy" : "search"} role="search">
      <input
        ref={input}
        type="search"
        placeholder="Search  /"
        aria-label="Search names and files"
        spellcheck={false}
        onInput={() => {
          window.clearTimeout(timer.current);
          timer.current = window.setTimeout(search, DELAY_MS);
        }}
        onBlur={search}
        onKeyDown={(event) => {
          const box = event.currentTarget;
          if (event.key === "Enter") {
            if (box.value === place.value.text && current.value) {
              goToMatch(event.shiftKey ? -1 : 1);
            } else isAwaited.current = true;
            search();
          } else if (event.key === "Escape") {
            box.value = "";
            box.blur();
          }
        }}
      />
      {text && matches && (
        <>
          <span class="search-count" role="status">
            {matches.count === 0 ? "no match" : countText(matches)}
          </span>
          {STEPS.map(([step, name, mark, key]) => (
            <Icon
              key={name}
              label={`${name} match`}
              disabled={!matches.count}
              title={titleOf(key)}
              onClick={() => goToMatch(step)}
            >
              {mark}
            </Icon>
          ))}
        </>
      )}
    </div>
  );
}

const STEPS = [
  [-1, "Previous", "↑", "N"],
  [1, "Next", "↓", "n"],
] as const;

function countText({ count, value, total, unit }: Matches): string {
  const place = at.value >= 0 ? `${at.value + 1} / ` : "";
  return `${place}${formatCount(count)} · ${formatValue(value, unit)} · ${formatShare(value, total)}`;
}

const NOT_OF_TREE: readonly View[] = ["compare", "table", "sandwich", "source"];

/** What matches in a comparison as it is drawn, in the rows of a view, elsewhere in the tree. */
function useFound(): Matches | null {
  const { text, view } = place.value;
  const shown = view === "compare" ? (graph.value?.layout ?? null) : null;
  const drawn = useMemo(() => (shown && text ? inLayout(shown, text) : null), [shown, text]);
  const inTree = !NOT_OF_TREE.includes(view);
  const query = text && inTree ? { ...tree.value, text } : null;
  const asked = useAnswer("find", query);
  const answer = query && asked.of === spelling("find", query) ? asked.answer : null;
  const unit = measure.value?.unit ?? "";
  const nodes = useMemo(
    () =>
      answer && {
        ...answer,
        unit,
        known: answer.nodes.length,
        visit: (index: number) => visit(answer.nodes[index].source, answer.nodes[index].id),
      },
    [answer],
  );
  return text ? (ofView.value ?? drawn ?? nodes) : null;
}

function inLayout(layout: Layout, text: string): Matches {
  const { nodes, value } = found(layout, matching(layout.functions, text) ?? new Uint8Array(0));
  return {
    count: nodes.length,
    value,
    total: layout.total,
    unit: layout.unit,
    known: nodes.length,
    visit: (index) => graph.value?.select(nodes[index]),
  };
}

function visit(source: number, func: number): void {
  const { view } = place.value;
  const shown = graph.value;
  const node = !shown
    ? -1
    : view === "flame"
      ? nodeOfSource(shown.layout, source)
      : rowOf(shown.layout, func);
  if (node >= 0) shown?.select(node);
  else {
    selected.value = { node: source, func: -1, layout: -1 };
    go({ view: "flame", zoom: source });
  }
}

/** The box of a function in the first row of a bottom-up graph. */
function rowOf(layout: Layout, func: number): number {
  return layout.func.findIndex(
    (each, node) => layout.depth[node] === 1 && layout.functions.id[each] === func,
  );
}

/** Go to the next match, or to the one before. */
export function goToMatch(step: 1 | -1): void {
  const matches = current.value;
  if (!matches?.known) return;
  const next = at.value < 0 && step < 0 ? matches.known - 1 : at.value + step;
  at.value = (next + matches.known) % matches.known;
  matches.visit(at.value);
}
