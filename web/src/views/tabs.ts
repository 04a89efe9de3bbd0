// The views that this page has something for; number keys count from the flame graph.

import { VIEWS, type View } from "../model/address";
import { about, compared, hasRanks, profile } from "../state";
import { otherSections } from "./sections_view";

export interface Tab {
  readonly view: View;
  readonly label: string;
  readonly key: string;
}

const LETTERS: Partial<Record<View, string>> = { overview: "o", processes: "p", ranks: "r" };

export function tabs(): Tab[] {
  const current = profile.value;
  const isShown: Partial<Record<View, unknown>> = {
    processes: about.value?.jobs.length,
    ranks: hasRanks(),
    table: current?.tables.length,
    compare: compared.value.length > 1,
    roofline: current?.roofline,
    timeline: current?.kept_steps,
    data: otherSections().length,
  };
  let number = 0;
  return (Object.entries(VIEWS) as [View, string][])
    .filter(([view]) => isShown[view] ?? !(view in isShown))
    .map(([view, label]) => ({
      view,
      label,
      key: LETTERS[view] ?? (++number < 10 ? String(number) : ""),
    }));
}
