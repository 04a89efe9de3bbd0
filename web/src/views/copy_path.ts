// Copying a call path: Ctrl C where nothing else is marked, or the button beside the path.

import { useEffect } from "preact/hooks";
import { type Layout, pathTo } from "../model/layout";
import { spoken } from "../state";
import { nodeName } from "./node_tip";
import { shorten } from "./parts";

/** Return a call path as text, a frame a line: its name, and its file where it has one. */
export function pathText(layout: Layout, node: number): string {
  const lines = pathTo(layout, node)
    .slice(1)
    .map((each) => {
      const file = layout.functions.file[layout.func[each]];
      return file ? `${nodeName(layout, each)}  ${shorten(file)}` : nodeName(layout, each);
    });
  return `${lines.join("\n")}\n`;
}

/** Put the path of the selected node on the clipboard if the user copies without a selection. */
export function useCopiedPath(layout: Layout, node: number): void {
  useEffect(() => {
    if (node <= 0 || node >= layout.count) return;
    const onCopy = (event: ClipboardEvent) => {
      const inField = event.target instanceof HTMLInputElement;
      if (inField || !document.getSelection()?.isCollapsed) return;
      event.clipboardData?.setData("text/plain", pathText(layout, node));
      event.preventDefault();
      spoken.value = "call path copied";
    };
    document.addEventListener("copy", onCopy);
    return () => document.removeEventListener("copy", onCopy);
  }, [layout, node]);
}

/** Copy without keys: the old command also works where a page may not use the clipboard. */
export function copyPath(): boolean {
  document.getSelection()?.removeAllRanges();
  return document.execCommand("copy");
}
