// Where a rank's own tree is: in its own profile, or below its frame in the merged one.

import type { RankName } from "../api_types";
import { about, go, measure, place, START } from "../shared";

/** Return what opens a rank's own tree, nothing where the page does not have it. */
export function opener({ rank, node }: RankName): (() => void) | undefined {
  const { file } = place.value;
  const metric = measure.value?.key ?? "";
  const job = about.value?.jobs.find(({ roles }) => roles.some((role) => role.file === file));
  // The last attempt is the last of its rank.
  const own = job?.processes.filter((each) => each.rank === rank && each.file >= 0).at(-1);
  if (own) return () => go({ ...START, view: "flame", metric, file: own.file });
  if (node < 0) return undefined;
  const edits = [{ kind: "root" as const, target: node, label: `rank ${rank}` }];
  return () => go({ ...START, view: "flame", metric, file, edits });
}

/** Return how a rank is named to a reader. */
export function rankText({ rank, host }: RankName): string {
  return host ? `rank ${rank} on ${host}` : `rank ${rank}`;
}
