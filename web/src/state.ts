// What the page knows and what the user looks at. Views read these signals; `go` changes the place.

import { Refusal, type Source } from "./api";
import type { AboutAnswer, ProfileAnswer } from "./api_types";
import { type Edit, fromHash, type Place, START, toHash, treeQuery } from "./model/address";
import { batch, computed, effect, signal } from "./signals";

/** The status of a server whose file has changed. */
export const CHANGED = 409;

export const source = signal<Source | null>(null);
export const about = signal<AboutAnswer | null>(null);
export const failure = signal<Refusal | null>(null);
export const place = signal<Place>(fromHash(location.hash));
export const helpOpen = signal(false);
export const paletteOpen = signal(false);
/** Node of the profile that is selected, and the frame of its function; -1 for none. */
export const selected = signal<{ node: number; func: number; layout: number }>({
  node: -1,
  func: -1,
  layout: -1,
});
/** What a screen reader says. */
export const spoken = signal("");
export const detailsOpen = signal(matchMedia("(min-width: 900px)").matches);

export type Theme = "light" | "dark" | "system";
const systemDark = signal(matchMedia("(prefers-color-scheme: dark)").matches);
export const theme = signal<Theme>(storedTheme());
export const dark = computed(() =>
  theme.value === "system" ? systemDark.value : theme.value === "dark",
);

export const profile = computed<ProfileAnswer | null>(() => {
  const profiles = about.value?.profiles ?? [];
  const chosen = profiles[place.value.file] ?? profiles[0];
  return chosen?.version ? chosen : null;
});
/** Whether the profile is of the ranks of a job, merged. */
export const hasRanks = () => !!profile.value?.ranks;
export const measure = computed(() => {
  const known = profile.value?.measures ?? [];
  const { metric, view } = place.value;
  const chosen = known.find(({ key }) => key === metric);
  return chosen ?? known.find(({ key }) => view !== "compare" || isShared(key)) ?? known[0] ?? null;
});
/** Whether all profiles that are compared and read have a measure. */
function isShared(key: string): boolean {
  return compared.value.every((index) => {
    const has = about.value?.profiles[index]?.measures ?? [];
    return !has.length || has.some((each) => each.key === key);
  });
}
/** Indices of the profiles that are compared, the base first. */
export const compared = computed(() => {
  const { base, other } = place.value;
  const all = [...Array(about.value?.compared ?? 0).keys()];
  const first = all[base] ?? 0;
  const others = all.filter((each) => each !== first);
  return [first, ...(others.includes(other) ? [other] : others)];
});
/** A graph has the difference of two; more are compared in a table. */
const isWide = computed(() => {
  const { view, sides } = place.value;
  return view === "compare" && sides === "difference" && compared.value.length > 2;
});
export const asTable = computed(() => place.value.shape === "tree" || isWide.value);
/** Whether each line of a function is a box of its own. */
export const byLine = computed(() => {
  const { lines } = place.value;
  return lines ? lines === "1" : !!measure.value?.by_line;
});
/** Whether boxes may be coloured by their spread over ranks: those of the tree from the root down. */
export function isSpreadKnown(): boolean {
  return hasRanks() && place.value.view === "flame" && !asTable.value;
}
/** The part that all questions about a tree have in common. */
export const tree = computed(() => treeQuery(place.value, measure.value?.key ?? "", byLine.value));

/** With a change of one of these, the part of a graph that was shown means another part. */
const OTHER_GRAPH = ["view", "file", "zoom", "func", "edits", "sides", "base", "other"];

/**
 * Look at something else. Each step is one of the browser's history, so that Back undoes it; steps that are
 * "merged" with the last one, if that was of the same kind, as those of a wheel are.
 */
export function go(change: Partial<Place>, history: "push" | "replace" | "merged" = "push"): void {
  const isOther = OTHER_GRAPH.some((name) => name in change);
  const next = { ...place.value, ...(isOther ? { range: "" } : {}), ...change };
  const hash = toHash(next);
  if (hash === toHash(place.value)) return;
  const address = hash ? `#${hash}` : location.pathname + location.search;
  try {
    const kind = history === "merged" ? Object.keys(change).join() : null;
    const isSame = kind && kind === window.history.state;
    if (history === "replace" || isSame) window.history.replaceState(kind, "", address);
    else window.history.pushState(kind, "", address);
  } catch {
    // In a notebook's frame the page has no address.
  }
  place.value = next;
}

export function showAs(shape: Place["shape"]): void {
  const pair = shape === "graph" && isWide.value ? { other: compared.value[1] } : {};
  go({ shape, ...pair });
}

export function toggleLines(): void {
  go({ lines: byLine.value ? "0" : "1" });
}

export function addEdit(kind: Edit["kind"], target: number, label: string): void {
  const edit = { kind, target, label };
  // What is merged away or dropped cannot stay selected.
  if (kind === "hide" || kind === "drop") selected.value = { node: -1, func: -1, layout: -1 };
  go({ edits: [...place.value.edits, edit], zoom: START.zoom, view: editView() });
}

/** Keep one subtree, or everything below a function where `source` is no single node. */
export function focusOn(source: number, frame: number, label: string): void {
  // Copies in a tree that is split have larger numbers; that of a label stands for the root.
  const node = source % (profile.value?.node_count ?? 1);
  addEdit(node ? "root" : "focus", node || frame, label);
}

/** Go to a node of the profile. Lines and library frames are shown, so that every node has a box. */
export function showNode(node: number): void {
  selected.value = { node, func: -1, layout: -1 };
  const { file, metric } = place.value;
  go({ ...START, view: "flame", file, metric, library: true, lines: "1", zoom: node });
}

function editView(): Place["view"] {
  const view = place.value.view;
  return view === "bottom-up" || view === "compare" || view === "sandwich" ? view : "flame";
}

export function undoEdit(index = place.value.edits.length - 1): void {
  if (index < 0) return;
  go({ edits: place.value.edits.filter((_, each) => each !== index), zoom: START.zoom });
}

// Of most processes of a job only the name is known, until one is looked at.
effect(() => {
  const { file } = place.value;
  const asked = source.value;
  if (!asked || about.value?.profiles[file]?.version !== "") return;
  asked.ask("profile", { file: String(file) }).then((answer) => {
    const known = about.value;
    if (!known) return;
    about.value = {
      ...known,
      profiles: known.profiles.map((each, index) => (index === file ? answer : each)),
    };
  }, fail);
});

function fail(error: unknown): void {
  failure.value = error instanceof Refusal ? error : new Refusal(String(error), 0);
}

/** Open the page: ask what there is, then follow the address. */
export async function open(opened: Source): Promise<void> {
  try {
    // The first picture needs them: the engine reads them while the server describes the profiles.
    opened.ask("opened", { file: String(place.value.file) }).catch(() => {});
    const answer = await opened.ask("about", {});
    batch(() => {
      source.value = opened;
      about.value = answer;
      failure.value = null;
    });
    // Who opens several profiles wants to see what differs.
    if (answer.compared > 1 && !answer.jobs.length && !location.hash) {
      go({ view: "compare" }, "replace");
    }
  } catch (error) {
    fail(error);
  }
}

// Whoever comes back to the page may have run the program again.
window.addEventListener("focus", () => {
  source.value?.ask("current", { file: String(place.value.file) }).catch((error: unknown) => {
    if (error instanceof Refusal && error.status === CHANGED) fail(error);
  });
});
window.addEventListener("popstate", () => {
  place.value = fromHash(location.hash);
});
window.addEventListener("hashchange", () => {
  const next = fromHash(location.hash);
  if (toHash(next) !== toHash(place.value)) place.value = next;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  systemDark.value = event.matches;
});

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem("deepcontext-theme");
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system"; // a page opened from a file may have no storage
  }
}

effect(() => {
  document.documentElement.dataset.theme = dark.value ? "dark" : "light";
  try {
    localStorage.setItem("deepcontext-theme", theme.value);
  } catch {
    // the same
  }
});
effect(() => {
  const current = profile.value;
  document.title = current ? `${current.name} · deepcontext` : "deepcontext";
});
