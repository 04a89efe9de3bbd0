// Where the page begins.

import { render } from "preact";
import { openSource } from "./api";
import { shared } from "./shared";
import { open } from "./state";
import "./style.css";
import { App } from "./views/app";

// Read by later scripts, such as `jobs/main.tsx`.
Object.assign(globalThis, { shared });

const root = document.getElementById("app");
if (root) {
  // The engine's thread starts, and asks, while the page is made.
  void open(openSource());
  render(<App />, root);
}
