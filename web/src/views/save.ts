// What one takes away: the graph as a picture, and the page.

import { profile, source, spoken } from "../state";
import { graph } from "./graph_handle";

export function savePicture(): void {
  const picture = graph.value?.picture();
  if (picture) save(URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" })), "svg");
}

/** Put the graph on the clipboard, for a chat or a slide. */
export async function copyPicture(): Promise<void> {
  const image = graph.value?.image();
  if (!image) return;
  const drawn = new Promise<Blob>((done, fail) => {
    image.toBlob((blob) => (blob ? done(blob) : fail()));
  });
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": drawn })]);
    spoken.value = "picture copied";
  } catch {
    spoken.value = "the picture could not be copied";
  }
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
