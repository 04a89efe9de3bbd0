// What the server opens beside the others: a file that is dropped on the page, or a part of a run.

import { Refusal } from "./api";
import type { ErrorAnswer, OpenedAnswer } from "./api_types";
import { START, type View } from "./model/address";
import { failure, go } from "./state";

/** What the page says above everything while a file is over it, or read. */
function say(text: string): void {
  document.body.dataset.drop = text;
}

/** Have the server open something more, and show it. `words`: how a new `deepcontext view` would open it. */
export async function openMore(
  question: string,
  name: string,
  words: string,
  view: View,
  body?: Blob,
): Promise<void> {
  try {
    if (document.getElementById("deepcontext-data")) {
      throw new Error(`this page has no server: run deepcontext view ${words}`);
    }
    const response = await fetch(`api/${question}`, { method: "POST", body: body ?? null });
    const answer: OpenedAnswer & ErrorAnswer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    go({ ...START, view, file: answer.file });
    location.reload();
  } catch (error) {
    failure.value = new Refusal(`${name} was not opened: ${(error as Error).message}`, 0);
  }
}

window.addEventListener("dragover", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  say("Drop a profile or a trace to open it");
});
window.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) say("");
});
window.addEventListener("drop", (event) => {
  const file = event.dataTransfer?.files[0];
  if (!file) return;
  event.preventDefault();
  const { name } = file;
  say(`Reading ${name}`);
  openMore(`open?name=${encodeURIComponent(name)}`, name, name, START.view, file).finally(() =>
    say(""),
  );
});
