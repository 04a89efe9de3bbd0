// Copying: a call path, a table or a finding as text.

import { useEffect, useState } from "preact/hooks";
import { titleOf } from "../model/key_texts";
import { type Layout, pathTo } from "../model/layout";
import { asTable, spoken } from "../state";
import { nodeName } from "./node_tip";
import { Link, shorten } from "./parts";
import { copyPicture, savePicture } from "./save";
import { isWhole } from "./windowed";

const SAID_MS = 1500;

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

/** The old command also works where a page may not use the clipboard. */
function copy(text: string): boolean {
  const give = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  document.addEventListener("copy", give, { capture: true, once: true });
  return document.execCommand("copy");
}

/** Put the address on the clipboard. */
export function copyLink(): void {
  spoken.value = copy(location.href) ? "link copied" : "the link could not be copied";
}

/** `what` is copied as Markdown, or else as the button's title says. */
export function CopyButton(props: { what?: string; title?: string; text: () => string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setCopied(false), SAID_MS);
    return () => window.clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      class="link copy"
      title={props.title ?? `Copy ${props.what}, for an issue or a chat`}
      onClick={async () => {
        isWhole.value = true;
        await new Promise((drawn) => setTimeout(drawn));
        setCopied(copy(props.text()));
        isWhole.value = false;
      }}
    >
      {copied ? "Copied" : props.what ? "Copy as Markdown" : "Copy"}
    </button>
  );
}

/** A button for the table of the view; of a tree, the rows that are open. */
export function CopyTable() {
  return <CopyButton what="the table" text={tableMarkdown} />;
}

/** A button to take the tree that is shown elsewhere: a graph as a picture, a table as text. */
export function TakeAway() {
  if (asTable.value) return <CopyTable />;
  return (
    <>
      <Link title={titleOf("G")} onClick={copyPicture}>
        Copy as image
      </Link>
      <Link title={titleOf("g")} onClick={savePicture}>
        Save as SVG
      </Link>
    </>
  );
}

const LEVEL = "\u2003"; // a space that Markdown keeps

function tableMarkdown(): string {
  const table = document.querySelector("main table, main [role=treegrid]");
  const rows = table?.querySelectorAll("tr, [role=row]") ?? [];
  const [head, ...others] = Array.from(rows, (row) => {
    const cells = Array.from(row.children, cellText);
    cells[0] = LEVEL.repeat((Number(row.ariaLevel) || 1) - 1) + cells[0];
    return cells;
  });
  if (!head) return "";
  return [head, head.map(() => "---"), ...others]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

function cellText(cell: Element): string {
  const said = cell.querySelector("[role=img]")?.getAttribute("aria-label");
  const text = cell.querySelector<HTMLElement>(".clip") ?? (cell as HTMLElement);
  // biome-ignore lint/performance/useDomNodeTextContent: parts on lines of their own need a space
  return escaped(said ?? text.innerText);
}

/** Return text in which Markdown sees neither marks nor cells of a table. */
export function escaped(text: string): string {
  return text
    .trim()
    .replace(/\s+/g, " ")
    .replace(/[\\*_|`]/g, "\\$&")
    .replace(/</g, "&lt;");
}
