// The views of jobs and ranks: a second script (`src/jobs`), loaded where the page shows a job or ranks.

import type { FunctionComponent } from "preact";
import { Refusal } from "../api";
import type { JobAnswer } from "../api_types";
import type { Layout } from "../model/layout";
import { effect, signal } from "../signals";
import { about, asTable, failure, hasRanks, place } from "../state";

/** What the second script adds. */
export interface JobViews {
  readonly Processes: FunctionComponent;
  readonly Ranks: FunctionComponent;
  readonly Roles: FunctionComponent<{ job: JobAnswer }>;
  /** A node's cost on each rank. */
  readonly Strip: FunctionComponent<{ layout: Layout; node: number }>;
}

export const jobViews = signal<JobViews | null>(null);

/** What a node costs on all ranks, and on the one where it costs most. */
export interface Spread {
  readonly mean: number;
  readonly most: number;
  readonly mostRank: number;
}

/** Returns the spread of a node of the flame graph, nothing where it is not known. */
export type SpreadOf = (source: number) => Spread | undefined;

/** Made by the second script while it is the colour of the flame graph. */
export const spread = signal<SpreadOf | null>(null);

/** Whether boxes may be coloured by spread: those of the tree from the root down. */
export function isSpreadKnown(): boolean {
  return hasRanks() && place.value.view === "flame" && !asTable.value;
}

let isAsked = false;
effect(() => {
  if (isAsked || jobViews.value || !(about.value?.jobs.length || hasRanks())) return;
  isAsked = true;
  const script = document.createElement("script");
  script.src = "static/jobs.js";
  script.onerror = () => {
    failure.value = new Refusal("the views of jobs could not be loaded; reload the page", 0);
  };
  document.head.append(script);
});
