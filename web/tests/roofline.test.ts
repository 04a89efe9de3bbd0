import { expect, test } from "vitest";
import type { RooflineChart, RooflinePoint } from "../src/api_types";
import { axis, place, pointAt } from "../src/roofline/placing";
import { decadeText, intensityText, limitText, rate, wordsOf } from "../src/roofline/words";

/** 100 Gflop/s under f32, 10 GB/s: both roofs meet at 10 flop/byte. */
const CHART: RooflineChart = {
  title: "PyTorch",
  metric: "",
  notes: [],
  ceilings: [{ type: "f32", flops_per_second: 1e11 }],
  bytes_per_second: 1e10,
  step_flops_per_second: 2e10,
  mfu: 0.2,
  time_ns: 1e9,
  groups: [],
};

function point(change: Partial<RooflinePoint>): RooflinePoint {
  return {
    name: "f",
    place: { file: "/p/train.py", shown: "train.py", line: 3 },
    node: 7,
    kind: 0,
    limit: "compute",
    limit_share: 1,
    time_ns: 5e8,
    calls: 10,
    flops: 4e10,
    bytes: 1e9,
    of_peak: 0.8,
    ...change,
  };
}

test("both axes are logarithmic, over whole decades", () => {
  const found = axis([3, 200], 100, 400);
  expect([found.from, found.to]).toEqual([1, 1000]);
  expect(found.ticks.map(({ value }) => value)).toEqual([1, 10, 100, 1000]);
  expect(found.ticks.map(({ at }) => at)).toEqual([100, 200, 300, 400]);
  expect(found.at(Math.sqrt(10))).toBeCloseTo(150);
});

test("an axis without values, or with one value, can be drawn", () => {
  for (const values of [[], [0], [10]]) {
    const { ticks } = axis(values, 0, 100);
    expect(ticks.length).toBeGreaterThan(1);
    expect(ticks.every(({ at }) => Number.isFinite(at))).toBe(true);
  }
});

test("a point lies at its intensity and its rate; at the roof it lies on it", () => {
  const attained = point({});
  const full = point({ flops: 5e9, bytes: 5e9 }); // 1 flop/byte at 10 GB/s
  const found = place(CHART, [attained, full]);
  const [first, second] = found.placed;
  expect(first.x).toBeCloseTo(found.intensity.at(40));
  expect(first.y).toBeCloseTo(found.rate.at(8e10));
  expect(second.y).toBeCloseTo(found.rate.at(1e10));
  const memory = found.memory;
  if (!memory) throw new Error("no roof");
  const part = (second.x - memory.from[0]) / (memory.to[0] - memory.from[0]);
  expect(second.y).toBeCloseTo(memory.from[1] + part * (memory.to[1] - memory.from[1]));
});

test("the roofs meet at the ridge", () => {
  const { memory, ceilings, ridge } = place(CHART, [point({})]);
  expect(ridge).toBe(10);
  expect(memory?.to[0]).toBeCloseTo(ceilings[0].from[0]);
  expect(memory?.to[1]).toBeCloseTo(ceilings[0].from[1]);
});

test("types of one rate share a ceiling, and labels of near ones lie side by side", () => {
  const ceilings = [
    { type: "f32", flops_per_second: 1e11 },
    { type: "f64", flops_per_second: 1e11 },
    { type: "bf16", flops_per_second: 1.01e11 },
  ];
  const found = place({ ...CHART, ceilings }, [point({})]).ceilings;
  expect(found.map(({ types }) => types)).toEqual([["bf16"], ["f32", "f64"]]);
  expect(found[1].label[0]).toBeLessThan(found[0].label[0]);
});

test("without peaks there are points and no roof", () => {
  const chart = { ...CHART, ceilings: [], bytes_per_second: 0, step_flops_per_second: 0 };
  const found = place(chart, [point({})]);
  expect([found.memory, found.ceilings.length, found.ridge]).toEqual([null, 0, 0]);
  expect(found.placed).toHaveLength(1);
});

test("what only moves data has a strip of its own, by bytes a second", () => {
  const moving = point({ flops: 0, bytes: 4e9, time_ns: 1e9 });
  const found = place(CHART, [moving, point({})]);
  const [first, second] = found.placed; // most time first
  expect(first.point).toBe(moving);
  expect(first.x).toBeGreaterThan(found.strip[0]);
  expect(first.x).toBeLessThan(found.strip[1]);
  expect(first.y).toBeCloseTo(found.bandwidth?.at(4e9) ?? Number.NaN);
  expect(second.x).toBeGreaterThan(found.strip[1]);
  expect(place(CHART, [point({})]).bandwidth).toBeNull();
});

test("points without bytes or time are left to the table", () => {
  const unknown = point({ bytes: 0, limit: "unknown" });
  const untimed = point({ time_ns: 0 });
  const found = place(CHART, [unknown, untimed, point({})]);
  expect(found.left).toEqual([unknown, untimed]);
  expect(found.placed).toHaveLength(1);
});

test("areas are as the times", () => {
  const [large, small] = place(CHART, [point({}), point({ time_ns: 1.25e8 })]).placed;
  expect(large.radius / small.radius).toBeCloseTo(2);
  const [tiny] = place(CHART, [point({ time_ns: 1 })]).placed;
  expect(tiny.radius).toBe(3);
});

test("the smallest point under the mouse is meant, else the nearest", () => {
  const at = (x: number, radius: number) => ({ point: point({}), x, y: 50, radius });
  const placed = [at(50, 20), at(55, 4), at(90, 4)];
  expect(pointAt(placed, 54, 50)).toBe(1);
  expect(pointAt(placed, 40, 50)).toBe(0);
  expect(pointAt(placed, 82, 50)).toBe(2);
  expect(pointAt(placed, 200, 50)).toBe(-1);
});

test("rates are written as in the report", () => {
  expect(rate(41.4e9, "FLOP/s")).toBe("41.4 GFLOP/s");
  expect(rate(8.8e9, "B/s")).toBe("8.80 GB/s");
  expect(rate(12, "B/s")).toBe("12 B/s");
  expect(decadeText(1e11, "FLOP/s")).toBe("100 GFLOP/s");
  expect(decadeText(1e6, "B/s")).toBe("1 MB/s");
  expect(decadeText(10, "B/s")).toBe("10 B/s");
  expect(intensityText(point({ flops: 1, bytes: 3 }))).toBe("0.333");
});

test("a point is told with its figures and its limit", () => {
  expect(wordsOf(point({}), CHART)).toBe(
    "train.py:3 f: 500 ms (50.0 % of the time), 80.0 GFLOP/s at 40 flop/byte, 2.00 GB/s, " +
      "80.0 % of the peak; limit: computing",
  );
  const moving = point({ flops: 0, of_peak: 0.2, limit: "memory", limit_share: 0.75 });
  expect(wordsOf(moving, CHART)).toBe(
    "train.py:3 f: 500 ms (50.0 % of the time), moves data only, 2.00 GB/s, 20.0 % of the peak; " +
      "limit: memory (75.0 % of its time)",
  );
});

test("a launch has a time a call and no share of the peak", () => {
  const short = point({ limit: "launch", of_peak: null, time_ns: 3e6, calls: 1000 });
  expect(limitText(short)).toBe("limit: launch cost, 3.00 us a call, whatever it computes");
  expect(wordsOf(short, CHART)).not.toContain("peak");
  const unknown = point({ limit: "unknown", of_peak: null });
  expect(limitText(unknown)).toContain("not known");
});
