// The tree of a question, with what each rank spent at its nodes by the measure that is shown.

import type { Query } from "../model/question";
import { measure, source } from "../shared";
import { ByRank } from "./by_rank";

export async function ranksOf(query: Query) {
  const asked = source.value;
  if (!asked) throw new Error("nothing is open");
  const metric = measure.value?.key ?? "";
  const [view, ranks] = await Promise.all([asked.view(query), asked.ranks(query.file || "0")]);
  return { view, ranks, found: ByRank.of(view, ranks, metric) };
}
