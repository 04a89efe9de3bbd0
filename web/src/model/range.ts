// Which part of a graph's width is shown, and how the address spells it: `0.25_0.5` for each graph of a view.

export interface Range {
  readonly from: number;
  readonly to: number;
}

export const WHOLE: Range = { from: 0, to: 1 };
const GRAPHS = "*";
const ENDS = "_";

/** Read the range of one of the graphs; what cannot be read is the whole width. */
export function rangeOf(text: string, graph: number): Range {
  const [from, to] = (text.split(GRAPHS)[graph] ?? "").split(ENDS).map(Number);
  return from >= 0 && from < to && to <= 1 ? { from, to } : WHOLE;
}

export function withRange(text: string, graph: number, { from, to }: Range): string {
  const ranges = text.split(GRAPHS);
  while (ranges.length <= graph) ranges.push("");
  ranges[graph] = from > 0 || to < 1 ? [from, to].join(ENDS) : "";
  return ranges.some(Boolean) ? ranges.join(GRAPHS) : "";
}

/** The part of the whole width that is a part of a box, and the other way round. */
export function within(box: Range, part: Range): Range {
  const span = box.to - box.from;
  return { from: box.from + part.from * span, to: box.from + part.to * span };
}

export function partOf(box: Range, range: Range): Range {
  const span = box.to - box.from;
  const part = (at: number) => Math.min(Math.max((at - box.from) / span, 0), 1);
  return { from: part(range.from), to: part(range.to) };
}
