// What one takes away as a file: the graph as a picture, and the page.

import { profile, source, spoken } from "../state";
import { graph } from "./graph_handle";

export function savePicture(): void {
  const picture = graph.value?.picture();
  if (picture) save(URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" })), "svg");
}

/** The page as one file, which the server writes as `--html` does. */
export function savePage(): void {
  if (source.value?.data) spoken.value = "this page is one file";
  else save("api/one_file", "html");
}

function save(address: string, kind: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = `${profile.value?.name}.${kind}`;
  link.click();
}
