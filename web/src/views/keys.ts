// Keys that work wherever the focus is, except in fields.

import type { ColorBy } from "../model/address";
import {
  asTable,
  detailsOpen,
  go,
  helpOpen,
  paletteOpen,
  place,
  showAs,
  toggleLines,
  undoEdit,
} from "../state";
import { copyLink } from "./copy";
import { graph } from "./graph_handle";
import { nextTheme } from "./header";
import { copyPicture, savePage, savePicture } from "./save";
import { goToMatch } from "./search_box";
import { tabs } from "./tabs";

const NEXT_COLOR: Record<ColorBy, ColorBy> = {
  layer: "phase",
  phase: "self",
  self: "layer",
  spread: "layer",
};

export function onPageKey(event: KeyboardEvent): void {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    paletteOpen.value = !paletteOpen.value;
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target as HTMLElement | null;
  if (
    target?.matches("input:not([type=checkbox]), select, textarea") ||
    helpOpen.value ||
    paletteOpen.value
  )
    return;
  const tab = tabs().find(({ key }) => key === event.key);
  if (tab) go({ view: tab.view });
  const action = ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

export const ACTIONS: Readonly<Record<string, () => void>> = {
  "?": () => {
    helpOpen.value = true;
  },
  Escape: () => graph.value?.zoomTo(0),
  n: () => goToMatch(1),
  N: () => goToMatch(-1),
  v: () => showAs(asTable.value ? "graph" : "tree"),
  h: () => go({ library: !place.value.library }),
  l: () => toggleLines(),
  t: () => go({ order: place.value.order === "program" ? "size" : "program" }),
  k: () => go({ color: NEXT_COLOR[place.value.color] }),
  u: () => undoEdit(),
  Backspace: () => undoEdit(),
  i: () => {
    detailsOpen.value = !detailsOpen.value;
  },
  d: nextTheme,
  y: copyLink,
  g: savePicture,
  G: copyPicture,
  e: savePage,
};
