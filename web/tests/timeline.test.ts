import { expect, test } from "vitest";
import type { LaneAnswer, SpanNode, StepAnswer } from "../src/api_types";
import { moved, placed, ROW, spanAt, ticks } from "../src/timeline/placing";

function node(name: string, line: number): SpanNode {
  const place = { file: line ? "/p/train.py" : "", shown: "train.py", line };
  return { node: 1, name, layer: "operator", phase: "forward", place, modules: "" };
}

/** Spans as [node, begin, duration]. */
function lane(spans: readonly (readonly [number, number, number])[], isDevice = false): LaneAnswer {
  return {
    name: isDevice ? "GPU 0, stream 7" : "MainThread",
    is_device: isDevice,
    known_from_ns: 0,
    node: spans.map(([each]) => each),
    begin_step: spans.map(([, begin], at) => begin - (at ? spans[at - 1][1] : 0)),
    duration_ns: spans.map(([, , duration]) => duration),
  };
}

const STEP: StepAnswer = {
  number: 5,
  duration_ns: 1000,
  nodes: [node("linear", 3), node("addmm", 3), node("add", 9), node("detach", 0)],
  lanes: [
    lane([
      [0, -20, 120],
      [1, 10, 50],
      [1, 70, 20],
      [0, 200, 100],
      [2, 300, 100],
      [3, 500, 10],
      [2, 600, 10],
    ]),
    lane([[1, 50, 900]], true),
  ],
};
const [HOST, STREAM] = placed(STEP).lanes;

test("spans lie below the ones around them", () => {
  expect([...HOST.begin]).toEqual([-20, 10, 70, 200, 300, 500, 600]);
  expect([...HOST.depth]).toEqual([0, 1, 1, 0, 0, 0, 0]);
  expect([...HOST.parent]).toEqual([-1, 0, 0, -1, -1, -1, -1]);
  expect([...HOST.own]).toEqual([50, 50, 20, 100, 100, 10, 10]);
});

test("lines reach from their first to their last operator", () => {
  expect(HOST.lines).toEqual([
    { begin: -20, end: 300, node: 0 },
    { begin: 300, end: 400, node: 2 },
    { begin: 600, end: 610, node: 2 },
  ]);
  expect(STREAM.lines).toEqual([]);
});

test("lanes lie below each other", () => {
  expect(HOST.top).toBe(0);
  expect(STREAM.top).toBeGreaterThanOrEqual(HOST.spansTop + 2 * ROW);
  expect(placed(STEP).height).toBeGreaterThan(STREAM.spansTop + ROW);
});

test("a point finds the span of its row", () => {
  const at = (moment: number, row: number, slack = 0) =>
    spanAt(HOST, moment, HOST.spansTop + row * ROW + 3, slack);
  expect(at(0, 0)).toBe(0);
  expect(at(65, 1)).toBe(-1);
  expect(at(75, 1)).toBe(2);
  expect(at(150, 0)).toBe(-1);
  expect(at(495, 0, 10)).toBe(5);
  expect(at(10, -1)).toBe(-1);
});

test("arrow keys go beside, around and inside", () => {
  expect(moved(HOST, 1, "right")).toBe(2);
  expect(moved(HOST, 1, "up")).toBe(0);
  expect(moved(HOST, 0, "down")).toBe(1);
  expect(moved(HOST, 3, "left")).toBe(0);
  expect(moved(HOST, 6, "right")).toBe(6);
  expect(moved(HOST, 6, "down")).toBe(6);
});

test("ticks are round and few", () => {
  expect(ticks(0, 1000, 5)).toEqual([0, 200, 400, 600, 800, 1000]);
  expect(ticks(0.2e6, 3.1e6, 4)).toEqual([1e6, 2e6, 3e6]);
  expect(ticks(5, 6, 3).length).toBeLessThanOrEqual(3);
});
