import { expect, test } from "vitest";
import { graft, layOut, nodeAt, nodeOfSource, pathTo, spanning } from "../src/model/layout";
import { neighbour } from "../src/model/move";
import { found, matching } from "../src/model/search";
import { answerOf, SMALL } from "./answers";

const layout = layOut(SMALL, "program");

test("children lie side by side inside their parent", () => {
  expect([...layout.left]).toEqual([0, 0, 0, 0.2, 0.6, 0.6]);
  expect([...layout.width]).toEqual([1, 0.6, 0.2, 0.3, 0.4, 0.4]);
  expect([...layout.parent]).toEqual([-1, 0, 1, 1, 0, 4]);
  expect([...layout.end]).toEqual([6, 4, 3, 4, 6, 6]);
  expect(layout.deepest).toBe(2);
});

test("in the order of size the largest child comes first, with everything below it", () => {
  const sorted = layOut(SMALL, "size");
  const names = [...sorted.func].map((func) => sorted.functions.name[func]);
  expect(names).toEqual(["root", "a", "d", "c", "b", "c"]);
  expect([...sorted.value]).toEqual([100, 60, 30, 20, 40, 40]);
  expect([...sorted.source]).toEqual([0, 1, 3, 2, 4, 5]);
});

test("a node is found where it is drawn, and nothing beside it", () => {
  expect(nodeAt(layout, 2, 0.25)).toBe(3);
  expect(nodeAt(layout, 2, 0.55)).toBe(-1); // the part of a that is its own
  expect(nodeAt(layout, 1, 0.6)).toBe(4);
  expect(nodeAt(layout, 0, 0.999)).toBe(0);
  expect(nodeAt(layout, 7, 0.1)).toBe(-1);
});

test("the deepest node over a range is what a zoom asks for", () => {
  expect(spanning(layout, 0.21, 0.4)).toBe(3);
  expect(spanning(layout, 0.1, 0.4)).toBe(1);
  expect(spanning(layout, 0.1, 0.9)).toBe(0);
});

test("a path leads from the root", () => {
  expect(pathTo(layout, 5)).toEqual([0, 4, 5]);
  expect(nodeOfSource(layout, 4)).toBe(4);
  expect(nodeOfSource(layout, 99)).toBe(-1);
});

test("a finer answer takes the place of what was known below its node", () => {
  const fine = answerOf(
    [
      { depth: 0, name: "root", value: 100, source: 0 },
      { depth: 1, name: "b", value: 40, source: 4 },
      { depth: 2, name: "e", value: 5, own: 5, source: 7 },
      { depth: 2, name: "c", value: 35, own: 35, source: 5 },
    ],
    { above: 1 },
  );
  const both = graft(SMALL, fine);
  const names = both.nodes.function.map((func) => both.functions.name[func]);
  expect(names).toEqual(["root", "a", "c", "d", "b", "e", "c"]);
  expect(both.nodes.value).toEqual([100, 60, 20, 30, 40, 5, 35]);
  expect(both.nodes.source).toEqual([0, 1, 2, 3, 4, 7, 5]);
  expect(SMALL.nodes.value).toEqual([100, 60, 20, 30, 40, 40]);
});

test("a finer answer for a node that is not there changes nothing", () => {
  const elsewhere = answerOf([{ depth: 3, name: "x", value: 1, source: 50 }]);
  expect(graft(SMALL, elsewhere)).toBe(SMALL);
});

test("search counts nested matches once", () => {
  const nested = layOut(
    answerOf([
      { depth: 0, name: "root", value: 10 },
      { depth: 1, name: "aten::mm", value: 8 },
      { depth: 2, name: "aten::mm_out", value: 6 },
      { depth: 1, name: "train", value: 2 },
    ]),
    "program",
  );
  const matches = matching(nested.functions, "MM");
  expect(matches && [...matches]).toEqual([0, 1, 1, 0]);
  expect(found(nested, matches ?? new Uint8Array(0))).toEqual({ nodes: [1, 2], value: 8 });
  expect(matching(nested.functions, "")).toBeNull();
  expect([...(matching(nested.functions, "train.py") ?? [])]).toEqual([0, 0, 0, 1]);
});

test("arrow keys lead to parent, largest child and neighbours of the level", () => {
  expect(neighbour(layout, 1, "down")).toBe(3);
  expect(neighbour(layout, 3, "up")).toBe(1);
  expect(neighbour(layout, 3, "right")).toBe(5);
  expect(neighbour(layout, 5, "left")).toBe(3);
  expect(neighbour(layout, 0, "up")).toBe(0);
  expect(neighbour(layout, 5, "down")).toBe(5);
  expect(neighbour(layout, -1, "down")).toBe(0);
});

test("an empty answer is laid out as nothing", () => {
  const empty = layOut(answerOf([]), "size");
  expect(empty.count).toBe(0);
  expect(nodeAt(empty, 0, 0.5)).toBe(-1);
  expect(neighbour(empty, -1, "down")).toBe(-1);
});
