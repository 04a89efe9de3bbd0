/**
 * Return how well a text has letters in their order, 0 for not at all: more where they stand together, begin
 * words, or are most of the text.
 */
export function fuzzy(text: string, letters: string): number {
  const lower = text.toLowerCase();
  const wanted = letters.toLowerCase().replaceAll(" ", "");
  const whole = lower.indexOf(wanted);
  let score = 1 / (1 + text.length);
  let at = Math.max(whole, 0);
  for (const letter of wanted) {
    const found = lower.indexOf(letter, at);
    if (found < 0) return 0;
    if (found === at) score += 1;
    if (/\W|_|^$/.test(lower.charAt(found - 1))) score += 2;
    at = found + 1;
  }
  return whole < 0 ? score : score + wanted.length;
}

/** Return the best few matches; equally good ones stay in their order. */
export function best<Each>(
  all: readonly Each[],
  textOf: (each: Each) => string,
  letters: string,
  most: number,
): Each[] {
  return all
    .map((each) => ({ each, score: fuzzy(textOf(each), letters) }))
    .filter(({ score }) => score)
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ each }) => each);
}
