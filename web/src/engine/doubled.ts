/** Return a column of twice the length, with the same beginning. */
export function doubled(column: Int32Array): Int32Array {
  const wide = new Int32Array(2 * column.length);
  wide.set(column);
  return wide;
}
