// Everything by its name: views, measures, settings, findings, functions and lines, with a few keys.

import { useEffect, useMemo, useState } from "preact/hooks";
import { best } from "../model/fuzzy";
import { KEY_TEXTS } from "../model/key_texts";
import { go, paletteOpen, profile, showNode, tree } from "../state";
import { ACTIONS } from "./keys";
import { Dialog, shorten } from "./parts";
import { tabs } from "./tabs";
import { useAnswer } from "./use_answer";

const MOST = 12;

/** Its kind, its name, and what it does. */
type Entry = readonly [kind: string, name: string, open: () => void];

/** Where the dialog did not close in between, nothing else gives it the focus. */
const focus = (input: HTMLInputElement | null) => input?.focus();

export function Palette() {
  return (
    <Dialog open={paletteOpen} label="Go to" class="palette">
      {paletteOpen.value && <Choices />}
    </Dialog>
  );
}

function Choices() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(text);
  useEffect(() => setAt(0), [text]);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    paletteOpen.value = false;
    entry[2]();
  };
  const move = (step: number) => setAt((at + step + entries.length) % entries.length);
  return (
    <>
      <input
        autofocus
        ref={focus}
        type="text"
        role="combobox"
        aria-label="Name"
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={`choice-${at}`}
        placeholder="View, measure, setting, finding, function, line"
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") choose(entries[at]);
          else if (event.key === "ArrowDown") move(1);
          else if (event.key === "ArrowUp") move(-1);
          else return;
          event.preventDefault();
        }}
      />
      <div id="choices" role="listbox" aria-label="Matches">
        {entries.map((entry, index) => (
          <div
            key={index}
            id={`choice-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => choose(entry)}
          >
            <span class="clip">{entry[1]}</span> <span class="muted">{entry[0]}</span>
          </div>
        ))}
      </div>
    </>
  );
}

function useEntries(text: string): readonly Entry[] {
  const asked = text ? { ...tree.value, fuzzy: text } : null;
  const functions = useAnswer("functions", asked).answer;
  const lines = useAnswer("table", asked && { ...asked, by: "line" }).answer;
  const { answer } = useAnswer("findings", { file: tree.value.file });
  return useMemo(() => {
    const all: Entry[] = [
      ...tabs().map(({ view, label }): Entry => ["view", label, () => go({ view })]),
      ...(profile.value?.measures ?? []).map(
        ({ key, label }): Entry => ["measure", label, () => go({ metric: key })],
      ),
      ...Object.entries(KEY_TEXTS).flatMap(([key, name]): Entry[] =>
        ACTIONS[key] ? [[`setting, ${key}`, name, ACTIONS[key]]] : [],
      ),
      ...(answer?.findings ?? []).map(
        ({ title, nodes }): Entry => ["finding", title, () => showNode(nodes[0] ?? 0)],
      ),
      ...(functions?.rows ?? []).map(
        ({ id, name, layer }): Entry => [layer, name, () => go({ view: "sandwich", func: id })],
      ),
      ...(lines?.rows ?? []).map(
        ({ file, line, name }): Entry => [
          "line",
          `${shorten(file)}:${line} ${name}`,
          () => go({ view: "source", path: file, line }),
        ],
      ),
    ];
    return text ? best(all, ([, name]) => name, text, MOST) : all.slice(0, MOST);
  }, [text, functions, lines, answer]);
}
