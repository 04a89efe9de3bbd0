import { expect, test } from "vitest";
import { partOf, rangeOf, WHOLE, within, withRange } from "../src/model/range";

test("each graph of a view has its range in the address", () => {
  const text = withRange(withRange("", 1, { from: 0.25, to: 0.5 }), 0, { from: 0, to: 0.1 });
  expect(rangeOf(text, 0)).toEqual({ from: 0, to: 0.1 });
  expect(rangeOf(text, 1)).toEqual({ from: 0.25, to: 0.5 });
  expect(rangeOf(text, 2)).toEqual(WHOLE);
  expect(withRange(withRange(text, 0, WHOLE), 1, WHOLE)).toBe("");
});

test("what is no range is the whole", () => {
  for (const text of ["", "x", "0.5_0.2", "0_2", "-1_1", "0.5"]) {
    expect(rangeOf(text, 0)).toEqual(WHOLE);
  }
});

test("a part of a box is a range of the whole, and back", () => {
  const box = { from: 0.5, to: 0.75 };
  const range = within(box, { from: 0.2, to: 0.6 });
  expect(range.from).toBeCloseTo(0.55);
  expect(partOf(box, range).to).toBeCloseTo(0.6);
  expect(partOf(box, WHOLE)).toEqual(WHOLE);
});
