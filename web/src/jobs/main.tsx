// A later script: the views of jobs and ranks. It takes everything it shares from the first.

import { addViews, effect, place, profile, spread, tree } from "../shared";
import { ProcessesView, Roles } from "./processes_view";
import { ranksOf } from "./ranks_of";
import { RanksView } from "./ranks_view";
import { Strip } from "./strip";

addViews({ processes: ProcessesView, ranks: RanksView, Roles, Strip });

let latest = "";
effect(() => {
  const { color, view } = place.value;
  const query = tree.value;
  const isShown = color === "spread" && view === "flame" && profile.value?.ranks;
  const key = isShown ? JSON.stringify(query) : "";
  if (key === latest) return;
  latest = key;
  spread.value = null;
  if (!key) return;
  ranksOf(query).then(
    ({ found }) => {
      if (key === latest) spread.value = found?.spreads() ?? (() => undefined);
    },
    () => {}, // the flame graph says what is wrong
  );
});
