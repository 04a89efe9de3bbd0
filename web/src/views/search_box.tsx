// The search box: marks what matches while one types, and goes from one to the next.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FindAnswer } from "../engine/answers";
import { formatCount, formatShare } from "../model/format";
import { type Layout, nodeOfSource } from "../model/layout";
import { found, matching } from "../model/search";
import { signal } from "../signals";
import { go, place, selected, tree } from "../state";
import { graph } from "./graph_handle";
import { useAnswer } from "./use_answer";

const DELAY_MS = 60;
/** The match that was visited last; -1 for none. */
const at = signal(-1);
/** Nodes that match, in the order of the tree: of the profile, or of the layout in a comparison. */
const sources = signal<readonly number[]>([]);

export function Search() {
  const input = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(place.value.text);
  useEffect(() => setTyped(place.value.text), [place.value.text]);
  useEffect(() => {
    const timer = window.setTimeout(() => go({ text: typed }, "replace"), DELAY_MS);
    return () => window.clearTimeout(timer);
  }, [typed]);
  const answer = useFound();
  useEffect(() => {
    at.value = -1;
    sources.value = answer?.nodes.map((each) => each.source) ?? [];
  }, [answer]);
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
    <div class={typed ? "search busy" : "search"} role="search">
      <input
        ref={input}
        type="search"
        value={typed}
        placeholder="Search  /"
        aria-label="Search names and files"
        spellcheck={false}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") goToMatch(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") {
            setTyped("");
            input.current?.blur();
          }
        }}
      />
      {typed && answer && (
        <span class="search-count" role="status">
          {answer.count === 0 ? "no match" : countText(answer)}
        </span>
      )}
      {typed && (
        <>
          <button
            type="button"
            class="icon"
            aria-label="Previous match"
            disabled={!answer?.count}
            title="Previous (N)"
            onClick={() => goToMatch(-1)}
          >
            ↑
          </button>
          <button
            type="button"
            class="icon"
            aria-label="Next match"
            disabled={!answer?.count}
            title="Next (n)"
            onClick={() => goToMatch(1)}
          >
            ↓
          </button>
        </>
      )}
    </div>
  );
}

function countText(answer: FindAnswer): string {
  const place = at.value >= 0 ? `${at.value + 1} / ` : "";
  return `${place}${formatCount(answer.count)} · ${formatShare(answer.value, answer.total)}`;
}

/** Ask for all matches of a tree; elsewhere only what is drawn is searched. */
function useFound(): FindAnswer | null {
  const { text, view } = place.value;
  const inTree = view === "flame" || view === "bottom-up";
  const asked = useAnswer("find", text && inTree ? { ...tree.value, text } : null);
  const shown = graph.value?.layout ?? null;
  const loaded = useMemo(() => (shown && text ? foundLoaded(shown, text) : null), [shown, text]);
  if (!text) return null;
  return inTree ? asked.answer : loaded;
}

function foundLoaded(layout: Layout, text: string): FindAnswer {
  const matches = matching(layout.functions, text) ?? new Uint8Array(0);
  const { nodes, value } = found(layout, matches);
  return {
    count: nodes.length,
    value,
    total: layout.total,
    // A node of several profiles has no number in one of them.
    nodes: nodes.map((node) => ({ source: node, value: layout.value[node] })),
  };
}

/** Go to the next match, or to the one before. */
export function goToMatch(step: 1 | -1): void {
  const known = sources.value;
  if (!known.length) return;
  const next = at.value < 0 && step < 0 ? known.length - 1 : at.value + step;
  at.value = (next + known.length) % known.length;
  const wanted = known[at.value];
  const shown = graph.value;
  const isPlace = shown?.layout.sides;
  const node = !shown ? -1 : isPlace ? wanted : nodeOfSource(shown.layout, wanted);
  if (node >= 0) shown?.select(node);
  else {
    selected.value = { node: wanted, func: -1, layout: -1 };
    go({ zoom: wanted }, "replace");
  }
}
