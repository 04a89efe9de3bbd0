// The search box: marks what matches while one types, and goes from one match to the next, the costliest first.

import { useEffect, useRef } from "preact/hooks";
import type { FoundNode } from "../engine/answers";
import type { View } from "../model/address";
import { formatCount, formatShare, formatValue } from "../model/format";
import { titleOf } from "../model/key_texts";
import { type Layout, nodeOfSource } from "../model/layout";
import { spelling } from "../model/question";
import { found, matching } from "../model/search";
import { computed, effect, signal } from "../signals";
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

/** What was found last, and in which view for which text: the answer for this text may be on its way. */
const latest = signal<(Matches & { of: string }) | null>(null);
const current = computed(() => {
  const found = latest.value;
  return found?.of === searched() ? found : null;
});
/** The match that was visited last; -1 for none. */
const at = signal(-1);
/** Enter, before the matches are known. */
let isAwaited = false;
effect(() => {
  if (!current.value || !isAwaited) return;
  isAwaited = false;
  goToMatch(1);
});

function searched(): string {
  const { view, text } = place.value;
  return text && `${isOfTree(view) ? "" : view} ${text}`;
}

function isOfTree(view: View): boolean {
  return !["compare", "table", "sandwich", "source"].includes(view);
}

/** Say what matches in what a view shows, once it is known. */
export function useMatches(make: () => Matches | null, inputs: readonly unknown[]): void {
  const of = searched();
  useEffect(() => {
    const made = of ? make() : null;
    if (!made) return;
    const found = { ...made, of };
    at.value = -1;
    latest.value = found;
    return () => {
      if (latest.value === found) latest.value = null;
    };
  }, [of, ...inputs]);
}

/** The rows of a table that match; the first one is visited first, or the first in another order. */
export function useRowMatches<Row>(
  asked: { answer: Rows<Row> | null; of: string },
  question: string,
  open: (row: Row) => void,
  order?: (a: Row, b: Row) => number,
): void {
  const { answer, of } = asked;
  useMatches(() => {
    if (!answer || of !== question) return null;
    const { match_count: count, match_value: value, total, unit } = answer;
    const rows = order ? [...answer.rows].sort(order) : answer.rows;
    return { count, value, total, unit, known: rows.length, visit: (at) => open(rows[at]) };
  }, [answer]);
}

interface Rows<Row> {
  readonly match_count: number;
  readonly match_value: number;
  readonly total: number;
  readonly unit: string;
  readonly rows: readonly Row[];
}

export function Search() {
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  const { text } = place.value;
  // While it has the focus, the box owns its text: what is searched for may be older.
  useEffect(() => {
    const box = input.current;
    if (box && document.activeElement !== box) box.value = text;
  }, [text]);
  useFound();
  const matches = current.value;
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
            } else isAwaited = true;
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

/** Find what matches in a comparison as it is drawn, or in the tree where a view does not find it itself. */
function useFound(): void {
  const { text, view } = place.value;
  const shown = view === "compare" && graph.value?.layout;
  useMatches(() => (shown ? inLayout(shown, text) : null), [shown]);
  const query = text && isOfTree(view) ? { ...tree.value, text } : null;
  const { answer, of } = useAnswer("find", query);
  useMatches(() => {
    if (!query || !answer || of !== spelling("find", query)) return null;
    const visit = (at: number) => visitNode(answer.nodes[at]);
    return { ...answer, unit: measure.value?.unit ?? "", known: answer.nodes.length, visit };
  }, [answer]);
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

function visitNode({ source, id }: FoundNode): void {
  const { view } = place.value;
  const shown = graph.value;
  const node = !shown
    ? -1
    : view === "flame"
      ? nodeOfSource(shown.layout, source)
      : rowOf(shown.layout, id);
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
