// The page as one file, which the server writes as `--html` does.

import { profile } from "../state";

export function savePage(): void {
  const link = document.createElement("a");
  link.href = "api/one_file";
  link.download = `${profile.value?.name}.html`;
  link.click();
}
