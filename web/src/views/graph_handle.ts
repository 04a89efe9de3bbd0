// The graph that is on screen, for the search box and the keys of the whole page.

import type { Layout } from "../model/layout";
import { signal } from "../signals";

export interface GraphHandle {
  readonly layout: Layout;
  zoomTo(node: number): void;
  select(node: number): void;
}

export const graph = signal<GraphHandle | null>(null);
