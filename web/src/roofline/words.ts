// What is said of a point: figures with their units, and what limits it.

import type { RooflineChart, RooflinePoint } from "../api_types";
import { formatCount, formatShare, formatTime } from "../model/format";
import { aSecond, intensityOf } from "./placing";

/** Return a rate as the report writes it: `41.4 GFLOP/s`. */
export function rate(value: number, unit: string): string {
  const text = formatCount(value);
  return /[a-zA-Z]$/.test(text) ? text + unit : `${text} ${unit}`;
}

/** Return a power of ten of a unit as an axis writes it: `10 GFLOP/s`. */
export function decadeText(value: number, unit: string): string {
  const power = Math.round(Math.log10(value));
  const prefix = PREFIXES[Math.floor(power / 3)] ?? `e${power - (power % 3)} `;
  return `${10 ** (power - 3 * Math.floor(power / 3))} ${prefix}${unit}`;
}

const PREFIXES = ["", "k", "M", "G", "T", "P"];

export function intensityText(point: RooflinePoint): string {
  return String(Number(intensityOf(point).toPrecision(3)));
}

export function nameOf({ name, place }: RooflinePoint): string {
  return place.file ? `${place.shown}:${place.line}` : name;
}

/** Return what limits a point, and why where that is not plain. */
export function limitText(point: RooflinePoint): string {
  const { limit, limit_share, time_ns, calls } = point;
  const part = limit_share < 0.9995 ? ` (${formatShare(limit_share, 1)} of its time)` : "";
  switch (limit) {
    case "compute":
      return `limit: computing${part}`;
    case "memory":
      return `limit: memory${part}`;
    case "launch":
      return `limit: launch cost${part}, ${formatTime(time_ns / (calls || 1))} a call, whatever it computes`;
    default:
      return "limit not known, without its bytes or without peaks for its type";
  }
}

/** Return all that is said of a point. */
export function wordsOf(point: RooflinePoint, chart: RooflineChart): string {
  const { time_ns, flops, bytes, of_peak } = point;
  const attained = flops ? `${rate(aSecond(flops, point), "FLOP/s")}` : "moves data only";
  const parts = [
    `${formatTime(time_ns)} (${formatShare(time_ns, chart.time_ns)} of the time)`,
    flops && bytes ? `${attained} at ${intensityText(point)} flop/byte` : attained,
    bytes ? rate(aSecond(bytes, point), "B/s") : "",
    of_peak === null ? "" : `${formatShare(of_peak, 1)} of the peak`,
  ];
  const name = point.place.file ? `${nameOf(point)} ${point.name}` : point.name;
  return `${name}: ${parts.filter(Boolean).join(", ")}; ${limitText(point)}`;
}
