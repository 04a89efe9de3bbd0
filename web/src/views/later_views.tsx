// The views of later scripts: of jobs and ranks (`src/jobs`), of the roofline (`src/roofline`) and of the time
// line (`src/timeline`). Each script is loaded where the page shows what it is for.

import type { FunctionComponent } from "preact";
import { Refusal } from "../api";
import type { JobAnswer } from "../api_types";
import type { View } from "../model/address";
import type { Layout } from "../model/layout";
import { effect, signal } from "../signals";
import { about, failure, hasRanks, place } from "../state";

/** What later scripts add. */
export interface LaterViews {
  readonly processes: FunctionComponent;
  readonly ranks: FunctionComponent;
  readonly Roles: FunctionComponent<{ job: JobAnswer }>;
  /** A node's cost on each rank. */
  readonly Strip: FunctionComponent<{ layout: Layout; node: number }>;
  readonly roofline: FunctionComponent;
  readonly timeline: FunctionComponent;
}

export const laterViews = signal<Partial<LaterViews> & Partial<Record<View, FunctionComponent>>>(
  {},
);

/** Called by a later script. */
export function addViews(views: Partial<LaterViews>): void {
  laterViews.value = { ...laterViews.value, ...views };
}

const asked = new Set<string>();
effect(() => {
  // A page's own file runs all its scripts before it knows what it shows.
  if (!about.value) return;
  const { view } = place.value;
  if (about.value.jobs.length || hasRanks()) load("jobs", "ranks");
  if (view === "roofline" || view === "timeline") load(view, view);
});

function load(name: string, view: View): void {
  if (asked.has(name) || laterViews.value[view]) return;
  asked.add(name);
  const script = document.createElement("script");
  script.src = `static/${name}.js`;
  script.onerror = () => {
    failure.value = new Refusal("a part of the page could not be loaded; reload the page", 0);
  };
  document.head.append(script);
}
