import { expect, test } from "vitest";
import cases from "../../tests/golden/web/format_cases.json";
import { formatShare, formatValue } from "../src/model/format";

for (const { unit, value, text } of cases) {
  test(`${value} ${unit} is written as ${text}`, () => {
    const written = unit === "share" ? formatShare(value, 1) : formatValue(value, unit);
    expect(written).toBe(text);
  });
}

test("a share of nothing is not a number", () => {
  expect(formatShare(1, 0)).toBe("-");
});
