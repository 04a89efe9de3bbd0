// The views in the order of their tabs; number keys count from the flame graph.

import type { View } from "../model/address";
import { about, compared, hasRanks, profile } from "../state";
import { otherSections } from "./sections_view";

export interface Tab {
  readonly view: View;
  readonly label: string;
  readonly mark: string;
  readonly key: string;
}

const LETTERS: Partial<Record<View, string>> = { overview: "o", processes: "p", ranks: "r" };

/** Return the views that this page has something for. */
export function tabs(): Tab[] {
  const warnings = profile.value?.warnings.length ?? 0;
  const all: (Omit<Tab, "key"> & { shown: boolean })[] = [
    { view: "overview", label: "Overview", mark: "", shown: true },
    {
      view: "processes",
      label: "Processes",
      mark: "",
      shown: (about.value?.jobs.length ?? 0) > 0,
    },
    { view: "ranks", label: "Ranks", mark: "", shown: hasRanks() },
    { view: "flame", label: "Flame graph", mark: "", shown: true },
    { view: "bottom-up", label: "Bottom-up", mark: "", shown: true },
    { view: "sandwich", label: "Sandwich", mark: "", shown: true },
    { view: "table", label: "Table", mark: "", shown: (profile.value?.tables.length ?? 0) > 0 },
    { view: "source", label: "Source", mark: "", shown: true },
    {
      view: "compare",
      label: "Compare",
      mark: "",
      shown: compared.value.length > 1,
    },
    { view: "findings", label: "Findings", mark: "", shown: true },
    { view: "roofline", label: "Roofline", mark: "", shown: !!profile.value?.roofline },
    { view: "timeline", label: "Time line", mark: "", shown: !!profile.value?.kept_steps },
    { view: "data", label: "Data", mark: "", shown: otherSections().length > 0 },
    { view: "trust", label: "Trust", mark: warnings ? String(warnings) : "", shown: true },
  ];
  let number = 0;
  return all
    .filter((tab) => tab.shown)
    .map((tab) => ({ ...tab, key: LETTERS[tab.view] ?? (++number < 10 ? String(number) : "") }));
}
