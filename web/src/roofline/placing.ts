// Where points, roofs and axes of a roofline lie, in the units of its picture. Pure: knows no colours, no words.

import type { RooflineChart, RooflinePoint } from "../api_types";

export const WIDTH = 960;
export const HEIGHT = 440;
const TOP = 14;
const BOTTOM = HEIGHT - 44;
const RIGHT = WIDTH - 14;
const AXIS = 84;
/** Of the strip for operators without operations. */
const STRIP = 96;
const LEAST_RADIUS = 3;
const MOST_RADIUS = 26;
/** Of a point that takes all the time, if it could be so large: many points must not cover the plot. */
const WHOLE_RADIUS = 90;
/** How far beside a point the mouse still means it. */
const NEAR = 10;
const LABEL_HEIGHT = 14;
const LABEL_WIDTH = 150;

/** A point in the picture. */
export interface Placed {
  readonly point: RooflinePoint;
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

/** A line of the picture: of a roof, or of the rate over a whole step. */
export interface Line {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
}

export interface Ceiling extends Line {
  readonly types: readonly string[];
  readonly rate: number;
  /** Right end of the label. */
  readonly label: readonly [number, number];
}

export interface Tick {
  readonly at: number;
  readonly value: number;
}

/** A logarithmic axis over whole decades. */
export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly at: (value: number) => number;
  readonly ticks: readonly Tick[];
}

export interface Placing {
  /** Most time first. */
  readonly placed: readonly Placed[];
  /** Points without a time, or whose bytes are not known. */
  readonly left: readonly RooflinePoint[];
  readonly intensity: Axis;
  readonly rate: Axis;
  /** Bytes a second in the strip; nothing without points there. */
  readonly bandwidth: Axis | null;
  readonly memory: Line | null;
  readonly ceilings: readonly Ceiling[];
  /** Where memory and the highest ceiling meet, in flop/byte; 0 where it is not known. */
  readonly ridge: number;
  readonly strip: readonly [left: number, right: number];
}

/** Return the arithmetic intensity of a point, in flop/byte. */
export const intensityOf = ({ flops, bytes }: RooflinePoint) => (bytes ? flops / bytes : 0);
/** Return what a point attains a second, of operations or bytes. */
export const aSecond = (amount: number, { time_ns }: RooflinePoint) =>
  time_ns ? (amount / time_ns) * 1e9 : 0;

/** Place the points of one group under the roof of a chart. */
export function place(chart: RooflineChart, points: readonly RooflinePoint[]): Placing {
  const timed = points.filter((point) => point.time_ns > 0 && point.bytes > 0);
  const computing = timed.filter((point) => point.flops > 0);
  const moving = timed.filter((point) => point.flops === 0);
  const bandwidth = chart.bytes_per_second;
  const rates = chart.ceilings.map((ceiling) => ceiling.flops_per_second);
  const ridges = bandwidth ? rates.map((rate) => rate / bandwidth) : [];
  const left = moving.length ? AXIS + STRIP + AXIS : AXIS;
  const intensity = axis([...computing.map(intensityOf), ...ridges], left, RIGHT);
  const attained = computing.map((point) => aSecond(point.flops, point));
  const rate = axis([...attained, ...rates, chart.step_flops_per_second], BOTTOM, TOP);
  const moved = moving.map((point) => aSecond(point.bytes, point));
  const inStrip = moving.length ? axis([...moved, bandwidth], BOTTOM, TOP) : null;
  const strip = [AXIS, AXIS + STRIP] as const;
  const radius = radii(timed, chart.time_ns);
  const placed = computing.map((point, index) => ({
    point,
    x: intensity.at(intensityOf(point)),
    y: rate.at(attained[index]),
    radius: radius(point),
  }));
  const beside = moving.map((point, index) => ({
    point,
    x: strip[0] + STRIP * ((index + 0.5) / moving.length),
    y: inStrip?.at(moved[index]) ?? 0,
    radius: radius(point),
  }));
  return {
    placed: [...placed, ...beside].sort((a, b) => b.point.time_ns - a.point.time_ns),
    left: points.filter((point) => !timed.includes(point)),
    intensity,
    rate,
    bandwidth: inStrip,
    memory: bandwidth ? slope(bandwidth, Math.max(...rates, 0), intensity, rate) : null,
    ceilings: ceilings(chart, intensity, rate),
    ridge: Math.max(...ridges, 0),
    strip,
  };
}

/** Return radii whose areas are as the times, and of which none is too small to see or too large. */
function radii(points: readonly RooflinePoint[], whole: number): (point: RooflinePoint) => number {
  const most = Math.max(...points.map((point) => point.time_ns), 1) / (whole || 1);
  const scale = Math.min(WHOLE_RADIUS, MOST_RADIUS / Math.sqrt(most));
  return ({ time_ns }) => Math.max(scale * Math.sqrt(time_ns / (whole || 1)), LEAST_RADIUS);
}

/** Return an axis of whole decades around some values; those of 0 are not known. */
export function axis(values: readonly number[], first: number, last: number): Axis {
  const known = values.filter((value) => value > 0).map(Math.log10);
  const from = known.length ? Math.floor(Math.min(...known) - 0.05) : 0;
  const to = Math.max(known.length ? Math.ceil(Math.max(...known) + 0.05) : 1, from + 1);
  const at = (value: number) => first + ((Math.log10(value) - from) / (to - from)) * (last - first);
  const ticks = Array.from({ length: to - from + 1 }, (_, step) => {
    const value = 10 ** (from + step);
    return { value, at: at(value) };
  });
  return { from: 10 ** from, to: 10 ** to, at, ticks };
}

/** Return the roof of the memory: rate = bandwidth x intensity, up to the highest ceiling. */
function slope(bandwidth: number, most: number, intensity: Axis, rate: Axis): Line | null {
  const start = Math.max(intensity.from, rate.from / bandwidth);
  const end = Math.min(intensity.to, (most || rate.to) / bandwidth);
  if (start >= end) return null;
  const end_of = (at: number) => [intensity.at(at), rate.at(bandwidth * at)] as const;
  return { from: end_of(start), to: end_of(end) };
}

/** Return the ceilings, highest first; types with the same rate share one. */
function ceilings(chart: RooflineChart, intensity: Axis, rate: Axis): Ceiling[] {
  const byRate = new Map<number, string[]>();
  for (const { type, flops_per_second } of chart.ceilings) {
    byRate.set(flops_per_second, [...(byRate.get(flops_per_second) ?? []), type]);
  }
  let above = Number.NEGATIVE_INFINITY;
  let shift = 0;
  return [...byRate]
    .sort(([a], [b]) => b - a)
    .map(([value, types]) => {
      const y = rate.at(value);
      const ridge = chart.bytes_per_second ? value / chart.bytes_per_second : 0;
      shift = y - above < LABEL_HEIGHT ? shift + LABEL_WIDTH : 0;
      above = y;
      return {
        types,
        rate: value,
        from: [intensity.at(Math.max(ridge, intensity.from)), y] as const,
        to: [RIGHT, y] as const,
        label: [RIGHT - shift, y - 5] as const,
      };
    });
}

/** Return the index of the point at a position: the smallest there, or else the nearest; -1 for none. */
export function pointAt(placed: readonly Placed[], x: number, y: number): number {
  let found = -1;
  let least = Number.POSITIVE_INFINITY;
  placed.forEach((each, index) => {
    const away = Math.hypot(each.x - x, each.y - y) - each.radius;
    if (away > NEAR) return;
    // What lies under the mouse comes before what is near; the smallest is on top.
    const order = away <= 0 ? each.radius - 1e4 : away;
    if (order < least) [least, found] = [order, index];
  });
  return found;
}
