// Answers questions about a page's data, for tests/ui/test_engine.py: bundled by Vite, run by Node.
//
//     node run_engine.mjs DATA QUESTIONS [warm]   (the page's data, a JSON list of [what, query])
//
// With "warm" the engine is warmed up first, as the page does while it is idle.
// Prints JSON: the answers, and the processor time of each in ms.

import { readFileSync } from "node:fs";
import { Source } from "../src/api";
import { Profile } from "../src/engine/profile";
import { warmUp } from "../src/engine/warm_up";
import { ByRank } from "../src/jobs/by_rank";
import { fileReader } from "../src/reader";

const [data, questions, warm] = process.argv.slice(2);
const asked = JSON.parse(readFileSync(questions, "utf8"));
const reader = fileReader(readFileSync(data, "utf8").split("\n"));
const source = new Source(reader);
if (warm) for (const _ of warmUp(new Profile(await reader.container("columns", "0"), "warm")));

/** What every node costs on each rank, and the spread of its cost. */
async function byRank(query) {
  const view = await source.view(query);
  const found = ByRank.of(view, await source.ranks(query.file || "0"), query.metric);
  if (!found) return null;
  const spreads = found.spreads();
  return Array.from(view.tree.frame, (_, node) => {
    const known = found.at(node);
    return {
      source: view.source(node),
      values: known && [...known],
      spread: spreads(view.source(node)) ?? null,
    };
  });
}

const ask = (what, query) => (what === "by_rank" ? byRank(query) : source.ask(what, query));
const answers = [];
const took = [];
for (const [what, query] of asked) {
  const before = process.cpuUsage();
  answers.push(await ask(what, query).catch(({ message }) => ({ error: message })));
  const { user, system } = process.cpuUsage(before);
  took.push((user + system) / 1000);
}
process.stdout.write(JSON.stringify({ answers, took }));
