// One question, one spelling: what has its default is left out, the rest is sorted.
// The counterpart is `spelling` in src/deepcontext/ui/web/questions.py.

export type Query = Record<string, string>;

/** Return `flame?kind=bottom_up&phase=backward`. */
export function spelling(what: string, query: Query): string {
  const names = Object.keys(query)
    .filter((name) => query[name] !== "")
    .sort();
  const text = names.map((name) => `${name}=${quote(query[name] ?? "")}`).join("&");
  return text ? `${what}?${text}` : what;
}

/** As Python's `urllib.parse.quote(text, safe="")`, which escapes five characters more. */
function quote(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
