// A question as text: the same question has the same text, which also is its address on the server.

export type Query = Record<string, string>;

/** Return `section?name=memory`; what is empty is left out. */
export function spelling(what: string, query: Query): string {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return text ? `${what}?${text}` : what;
}
