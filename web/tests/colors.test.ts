import { expect, test } from "vitest";
import { contrast, mix, palette, shadeOf, shades } from "../src/model/colors";

const AA = 4.5;

function hex(color: string): string {
  const parts = /rgb\((\d+),(\d+),(\d+)\)/.exec(color);
  if (!parts) return color;
  return `#${parts
    .slice(1)
    .map((each) => Number(each).toString(16).padStart(2, "0"))
    .join("")}`;
}

for (const dark of [false, true]) {
  const colors = palette(dark);
  const fills = {
    ...colors.layers,
    ...colors.phases,
    cold: colors.heat[0],
    hot: colors.heat[1],
    less: colors.less,
    same: colors.same,
    more: colors.more,
  };
  for (const [name, fill] of Object.entries(fills)) {
    test(`labels can be read on ${name} in ${dark ? "dark" : "light"} mode`, () => {
      expect(contrast(colors.label, fill)).toBeGreaterThanOrEqual(AA);
      expect(contrast(colors.share, fill)).toBeGreaterThanOrEqual(AA);
      for (const shade of shades(fill, dark)) {
        expect(contrast(colors.label, hex(shade))).toBeGreaterThanOrEqual(AA);
      }
    });
  }
  test(`halfway between two colours labels can be read, too (${dark ? "dark" : "light"})`, () => {
    for (const part of [0.25, 0.5, 0.75]) {
      const color = hex(mix(colors.heat[0], colors.heat[1], part));
      expect(contrast(colors.label, color)).toBeGreaterThanOrEqual(AA);
    }
  });
}

test("contrast is that of WCAG", () => {
  expect(contrast("#000000", "#ffffff")).toBeCloseTo(21, 5);
  expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
});

test("a name always gets the same shade", () => {
  expect(shadeOf("aten::mm")).toBe(shadeOf("aten::mm"));
  expect(new Set(["a", "b", "c", "d", "e", "f"].map(shadeOf)).size).toBeGreaterThan(1);
});
