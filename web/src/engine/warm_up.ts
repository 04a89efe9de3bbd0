// Answers questions that nobody asked, so that the browser has compiled the engine when somebody does.

import type { Query } from "../model/question";
import { Engine } from "./engine";
import type { Profile } from "./profile";

/** Small enough that each answer takes a part of a frame, also while nothing is compiled. */
const NODES = 1_000;
// Compilers of a browser optimize what has run for a while.
const ROUNDS = 12;
/** Functions are made of frames; of many frames that takes longer than a part of a frame. */
const MOST_FRAMES = 5_000;
const SWITCHES: readonly Query[] = [
  {},
  { library: "1", lines: "1" },
  { pivot: "phase" },
  { kind: "bottom_up" },
];

/** Answer questions about the beginning of a profile, one at each step. */
export function* warmUp(profile: Profile): Generator<void> {
  const [metric] = profile.facts.totals;
  if (!metric) return;
  let part = profile.beginning(NODES);
  for (let round = 0; round < ROUNDS; round++) {
    if (part.frames.kind.length <= MOST_FRAMES) part = profile.beginning(NODES);
    // A new engine has no answer yet.
    const engine = new Engine();
    for (const query of SWITCHES) {
      engine.answer("flame", { ...query, metric, edits: "hide:0" }, [part], null);
      yield;
    }
    engine.answer("table", { metric }, [part], null);
    yield;
  }
}
