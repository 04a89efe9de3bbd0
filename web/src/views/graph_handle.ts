// The graph that is on screen, for the search box and the keys of the whole page.

import { useEffect, useRef } from "preact/hooks";
import type { Layout } from "../model/layout";
import { signal } from "../signals";
import type { FlameHandle } from "./flame_canvas";

export interface GraphHandle extends FlameHandle {
  readonly layout: Layout;
}

export const graph = signal<GraphHandle | null>(null);

/** Make a tree the one on screen; return what takes the handle of its canvas, if it is drawn on one. */
export function useGraph(layout: Layout, choose: (node: number) => void) {
  const handle = useRef<FlameHandle | null>(null);
  useEffect(() => {
    graph.value = {
      layout,
      zoomTo: (node) => handle.current?.zoomTo(node),
      select: (node) => (handle.current ? handle.current.select(node) : choose(node)),
      picture: () => handle.current?.picture() ?? "",
      image: () => handle.current?.image() ?? null,
    };
    return () => {
      graph.value = null;
    };
  }, [layout]);
  return (each: FlameHandle | null) => {
    handle.current = each;
  };
}
