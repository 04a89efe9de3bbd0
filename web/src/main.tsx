// Where the page begins.

import { render } from "preact";
import { openSource } from "./api";
import { open } from "./state";
import "./style.css";
import { App } from "./views/app";

const root = document.getElementById("app");
if (root) {
  render(<App />, root);
  void open(openSource());
}
