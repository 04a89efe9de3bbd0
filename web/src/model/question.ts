// A question as text: the same question has the same text, which also is its address on the server.

export type Query = Record<string, string>;

/** What the first level of a tree can show; the first is the default. */
export const PIVOTS: readonly string[] = ["thread", "none", "phase"];

/** The changes of a tree. */
export const EDIT_KINDS = ["root", "focus", "hide", "collapse", "drop", "open"] as const;
export type EditKind = (typeof EDIT_KINDS)[number];

/** Return `section?name=memory`; what is empty is left out. */
export function spelling(what: string, query: Query): string {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return text ? `${what}?${text}` : what;
}
