// What keys do, for the list of everything and for the titles of buttons that do the same.

export const KEY_TEXTS: Readonly<Record<string, string>> = {
  "/": "Search; Enter for the costliest match",
  "Ctrl K": "Go to anything by its name",
  n: "Next match",
  N: "Previous match",
  v: "Graph or table",
  h: "Hide or show library functions",
  l: "A box for each line",
  t: "Program order, or largest first",
  k: "Colour by layer, phase or self cost",
  u: "Undo the last change of the tree",
  i: "Details",
  y: "Copy the link to what is shown",
  g: "Save the graph as a picture (SVG)",
  G: "Copy the graph as a picture (PNG)",
  e: "Save the page as one file",
  d: "Light or dark",
  f: "Focus: keep this and all below it",
  s: "Sandwich: callers and callees of this function",
  x: "Hide: merge this function into its callers",
  c: "Collapse: merge what this function calls into it",
  Delete: "Drop: leave this function and its cost out",
  Escape: "Zoom out",
};

/** The title of what does the same as a key. */
export function titleOf(key: string): string {
  return `${KEY_TEXTS[key]} (${key})`;
}
