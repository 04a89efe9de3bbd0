/** Return a column of twice the length, with the same beginning. */
export function doubled<Column extends Int32Array | Float64Array>(column: Column): Column {
  const wide = new (column.constructor as new (length: number) => Column)(2 * column.length);
  wide.set(column);
  return wide;
}
