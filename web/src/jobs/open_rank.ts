// Where a rank's own tree is: in its own profile.

import type { RankName } from "../api_types";
import { START } from "../model/address";
import { about, go, measure, place } from "../state";

/** Return what opens a rank's own tree, nothing where the page does not have it. */
export function opener({ rank }: RankName): (() => void) | undefined {
  const { file } = place.value;
  const metric = measure.value?.key ?? "";
  const job = about.value?.jobs.find(({ roles }) => roles.some((role) => role.file === file));
  // The last attempt is the last of its rank.
  const own = job?.processes.filter((each) => each.rank === rank && each.file >= 0).at(-1);
  return own && (() => go({ ...START, view: "flame", metric, file: own.file }));
}

/** Return how a rank is named to a reader. */
export function rankText({ rank, host }: RankName): string {
  return host ? `rank ${rank} on ${host}` : `rank ${rank}`;
}
