// A file that is dropped on the page is read by its server, and opened beside the others.

import { Refusal } from "./api";
import type { ErrorAnswer, OpenedAnswer } from "./api_types";
import { START } from "./model/address";
import { failure, go } from "./state";

/** What the page says above everything while a file is over it, or read. */
function say(text: string): void {
  document.body.dataset.drop = text;
}

async function send(file: File): Promise<number> {
  if (document.getElementById("deepcontext-data")) {
    throw new Error(`this page has no server: run deepcontext view ${file.name}`);
  }
  const name = encodeURIComponent(file.name);
  const response = await fetch(`api/open?name=${name}`, { method: "POST", body: file });
  const answer: OpenedAnswer & ErrorAnswer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer.file;
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
  say(`Reading ${file.name}`);
  send(file)
    .then(
      (index) => {
        go({ ...START, file: index });
        location.reload();
      },
      (error: Error) => {
        failure.value = new Refusal(`${file.name} was not opened: ${error.message}`, 0);
      },
    )
    .finally(() => say(""));
});
