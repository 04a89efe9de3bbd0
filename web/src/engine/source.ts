// Answers with source text: files that the profile names, and the cost of their lines.

import type { SourceText } from "../api_types";
import type { FilesAnswer, LineCost, SourceAnswer } from "./answers";
import { refuse } from "./options";
import type { Profile } from "./profile";
import type { GroupTable } from "./tables";

const MOST_FILES = 500;

/** The costs of all source lines by file. */
export interface LineCosts {
  readonly ofFile: ReadonlyMap<string, readonly LineCost[]>;
  readonly total: number;
}

/**
 * A line of user code includes the cost of libraries it calls; a line of a library excludes costs
 * that a deeper Python line accounts for.
 */
export function lineCosts(profile: Profile, user: GroupTable, python: GroupTable): LineCosts {
  const ofFile = new Map<string, LineCost[]>();
  const library = python.rows.filter((row) => profile.facts.files[row.file].library);
  for (const { file, line, name, inclusive, exclusive } of [...user.rows, ...library]) {
    const costs = ofFile.get(file) ?? [];
    costs.push({ line, function: name, inclusive, exclusive });
    ofFile.set(file, costs);
  }
  return { ofFile, total: user.total };
}

export function filesAnswer(profile: Profile, lines: LineCosts, unit: string): FilesAnswer {
  const files = [...lines.ofFile].map(([file, costs]) => {
    const { shown, library } = profile.facts.files[file];
    const exclusive = costs.reduce((sum, cost) => sum + cost.exclusive, 0);
    return { file, shown, library, exclusive };
  });
  files.sort(
    (a, b) =>
      Number(a.library) - Number(b.library) ||
      b.exclusive - a.exclusive ||
      (a.file < b.file ? -1 : 1),
  );
  return { unit, total: lines.total, files: files.slice(0, MOST_FILES) };
}

export function sourceAnswer(
  profile: Profile,
  lines: LineCosts,
  unit: string,
  path: string,
  text: SourceText | null,
): SourceAnswer {
  const costs = [...(lines.ofFile.get(path) ?? [])].sort((a, b) => a.line - b.line);
  if (!costs.length || !text) {
    return refuse("this profile names no such source file; open a file from the list");
  }
  const last = costs[costs.length - 1].line;
  const isShorter = text.length > 0 && last > text.length;
  return {
    file: path,
    shown: profile.facts.files[path].shown,
    unit,
    total: lines.total,
    note: isShorter
      ? `the file has ${text.length} lines, the profile names line ${last}`
      : text.note,
    parts: text.parts,
    costs,
  };
}
