// Numbers as Python's numpy writes them.

export const NOT_RECORDED = -1;

/** Round to the nearest whole number, halves to the even one. */
export function rounded(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return Math.round(value);
  return below % 2 === 0 ? below : below + 1;
}
