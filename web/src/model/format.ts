// Numbers with units, exactly as src/deepcontext/ui/format.py writes them
// (tests/format_cases.json holds both to the same texts).

type Unit = readonly [factor: number, name: string];

const TIMES: readonly Unit[] = [
  [1, "ns"],
  [1e3, "us"],
  [1e6, "ms"],
  [1e9, "s"],
];
const BYTES: readonly Unit[] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].map((name, power) => [
  1024 ** power,
  name,
]);
const COUNTS: readonly Unit[] = ["", "k", "M", "G", "T", "P"].map((name, power) => [
  1000 ** power,
  name,
]);

/** Return a value with its unit: `1.23 ms`, `4.00 MiB`, `12,345`. */
export function formatValue(value: number, unit: string): string {
  switch (unit) {
    case "ns":
      return formatTime(value);
    case "bytes":
      return scaled(value, BYTES);
    default:
      return formatCount(value);
  }
}

/** Return a duration given in ns; from 1000 s on as minutes or hours. */
export function formatTime(ns: number): string {
  if (Math.abs(ns) < 1e12) return scaled(ns, TIMES);
  const sign = ns < 0 ? "-" : "";
  const whole = Math.round(Math.abs(ns) / 1e9);
  const pad = (part: number) => String(part).padStart(2, "0");
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)}m ${pad(whole % 60)}s`;
  return `${sign}${Math.floor(whole / 3600)}h ${pad(Math.floor((whole % 3600) / 60))}m`;
}

/** Return a count; exact below a million, with a fraction below 100. */
export function formatCount(count: number): string {
  if (Math.abs(count) >= 100 && !Number.isInteger(count))
    return formatCount(Number(toFixedEven(count, 0)));
  if (Math.abs(count) < 1e6 && Number.isInteger(count)) return grouped(count);
  return scaled(count, COUNTS);
}

/** Return a whole number with commas; `toLocaleString` takes 20 ms when it is called first. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

interface Spread {
  readonly mean: number;
  readonly deviation: number | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
}

/** Return a mean with the deviation as a part of it; a larger deviation says nothing, a range does. */
export function formatMean({ mean, deviation, minimum, maximum }: Spread): string {
  const text = formatTime(mean);
  if (deviation === null || !(mean > 0)) return text;
  if (deviation <= mean) return `${text} ± ${toFixedEven((100 * deviation) / mean, 0)} %`;
  return minimum === null || maximum === null ? text : `${text} (${range(minimum, maximum)})`;
}

function range(from: number, to: number): string {
  return `${formatTime(from)} to ${formatTime(to)}`;
}

/** Return what is said of the calls of a node, by name. */
export function callTexts(calls: Spread & { readonly count: number }): [string, string][] {
  const { count, minimum, maximum } = calls;
  const rows: [string, string][] = [
    ["calls", formatCount(count)],
    ["per call", formatMean({ ...calls, minimum: null })],
  ];
  if (minimum !== null && maximum !== null && count > 1) {
    rows.push(["range", range(minimum, maximum)]);
  }
  return rows;
}

/** Return a part of the whole as `12.3 %`. */
export function formatShare(part: number, whole: number): string {
  if (!(whole > 0)) return "-";
  const percent = (100 * part) / whole;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  const rounded = toFixedEven(percent, 1);
  return Number(rounded) < 100 ? `${rounded} %` : `${percent.toFixed(0)} %`;
}

function scaled(value: number, units: readonly Unit[]): string {
  if (value === 0) return "0";
  for (const [factor, name] of units) {
    const part = value / factor;
    const digits = factor === 1 && Number.isInteger(value) ? 0 : decimals(part);
    const text = toFixedEven(part, digits);
    const isLast = name === units[units.length - 1]?.[1];
    if (Math.abs(Number(text)) < 1000 || isLast) return `${text} ${name}`.trimEnd();
  }
  return String(value);
}

function decimals(part: number): number {
  const magnitude = Math.abs(part);
  if (magnitude < 9.995) return 2;
  return magnitude < 99.95 ? 1 : 0;
}

/**
 * Round exact halves to even, as Python does; `toFixed` rounds them up.
 *
 * With up to two digits only eighths can be exact halves: 0.125 is one, 0.05 is a little more.
 */
function toFixedEven(value: number, digits: number): string {
  const factor = 10 ** digits;
  const shifted = Math.abs(value) * factor;
  const floor = Math.floor(shifted);
  if (shifted - floor === 0.5 && floor % 2 === 0 && Number.isInteger(value * 8)) {
    return (Math.sign(value) * (floor / factor)).toFixed(digits);
  }
  return value.toFixed(digits);
}
