import { expect, test } from "vitest";
import cases from "../../tests/golden/web/spelling_cases.json";
import { type Query, spelling } from "../src/model/question";

for (const { what, query, text } of cases) {
  test(`the question ${text} is spelled as Python spells it`, () => {
    expect(spelling(what, query as Query)).toBe(text);
  });
}
