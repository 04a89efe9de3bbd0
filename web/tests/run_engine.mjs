// Asks the engine's thread about a page's data, for tests/ui/test_engine.py: bundled by Vite, run by Node.
//
//     node run_engine.mjs DATA QUESTIONS   (the page's data, a JSON list of [what, query])
//
// A question with a third member is dropped at once. Prints JSON: the answers, and the processor time of each in ms.

import { readFileSync } from "node:fs";
import { answerOn } from "../src/engine/thread";

const [data, questions] = process.argv.slice(2);
const asked = JSON.parse(readFileSync(questions, "utf8"));
const { port1, port2 } = new MessageChannel();
answerOn(port2);
port1.postMessage(readFileSync(data, "utf8"));
const answers = asked.map(() => null);
const took = [];
let answered = () => {};
port1.onmessage = ({ data: { id, answer, error } }) => {
  answers[id] = error === undefined ? answer : { error };
  answered();
};
for (const [id, [what, query, isDropped]] of asked.entries()) {
  const before = process.cpuUsage();
  port1.postMessage({ id, what, query });
  if (isDropped) port1.postMessage(id);
  else {
    await new Promise((resolve) => {
      answered = resolve;
    });
  }
  const { user, system } = process.cpuUsage(before);
  took.push((user + system) / 1000);
}
process.stdout.write(JSON.stringify({ answers, took }), () => process.exit());
