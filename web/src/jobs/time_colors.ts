// The colours of what processes and ranks did.

import { dark } from "../state";

/** Colours that also differ in lightness, for readers who see few hues. */
const COLORS = {
  light: {
    operator: "#e3a83c",
    running: "#6a94dd",
    waiting: "#d3d3cc",
    loading: "#8c2d04",
    transfer: "#2f9384",
  },
  dark: {
    operator: "#d9a441",
    running: "#5a86d6",
    waiting: "#4a4e57",
    loading: "#ffd9c2",
    transfer: "#54b9a8",
  },
} as const;

export function timeColors() {
  return COLORS[dark.value ? "dark" : "light"];
}
