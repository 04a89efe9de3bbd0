// Answers questions about a page's data, for tests/ui/test_engine.py: bundled by Vite, run by Node.
//
//     node run_engine.mjs DATA QUESTIONS   (a JSON list of [what, query])
//
// Prints JSON: the answers, the processor time of each in ms, and that of reading the data.

import { readFileSync } from "node:fs";
import { Container } from "../src/engine/container";
import { Engine } from "../src/engine/engine";

const [data, questions] = process.argv.slice(2);
const asked = JSON.parse(readFileSync(questions, "utf8"));
const bytes = new Uint8Array(readFileSync(data));
const [engine, reading] = timed(() => new Engine(Container.read(bytes)));
const took = [];
const answers = asked.map(([what, query]) => {
  const [answer, time] = timed(() => answerTo(what, query));
  took.push(time);
  return answer;
});
process.stdout.write(JSON.stringify({ answers, took, reading }));

function answerTo(what, query) {
  try {
    return engine.answer(what, query);
  } catch (error) {
    return { error: error.message };
  }
}

function timed(run) {
  const before = process.cpuUsage();
  const result = run();
  const { user, system } = process.cpuUsage(before);
  return [result, (user + system) / 1000];
}
