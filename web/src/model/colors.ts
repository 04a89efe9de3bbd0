// Colours of frames. The legend, the switches and the graph all take them from here.
// Fills are picked so that the label's colour has a contrast of at least 4.5 on each (colors.test.ts).

export interface Palette {
  readonly label: string;
  /** Of the share at a box's right end: quieter than its name. */
  readonly share: string;
  /** Of names that a search does not match, on a box that is faint itself. */
  readonly faint: string;
  readonly gap: string;
  readonly hatch: string;
  readonly accent: string;
  readonly layers: Readonly<Record<string, string>>;
  readonly phases: Readonly<Record<string, string>>;
  readonly heat: readonly [string, string];
  readonly less: string;
  readonly same: string;
  readonly more: string;
}

const LIGHT: Palette = {
  label: "#1b1d21",
  share: "#3c3f45",
  faint: "#55585f",
  gap: "#fbfbf9",
  hatch: "#c4c4bc",
  accent: "#1f4fd8",
  layers: {
    root: "#dcdcd7",
    thread: "#dcdcd7",
    python: "#b4cdf0",
    scope: "#d2c5f0",
    module: "#b3dcbc",
    operator: "#f6d698",
    compiled: "#a6dcd8",
    native: "#d9d3a8",
    gpu: "#f4b9b4",
  },
  phases: {
    forward: "#b4cdf0",
    backward: "#f6c3a0",
    recompute: "#e0c0ea",
    optimizer: "#b3dcbc",
    data_loading: "#f2dd98",
    other: "#dcdcd7",
    none: "#ececE8",
  },
  heat: ["#ebe7da", "#f0925a"],
  less: "#7fb0ea",
  same: "#e6e6e1",
  more: "#f09a80",
};

const DARK: Palette = {
  label: "#f0f1f3",
  share: "#e6e8ec",
  faint: "#b9bcc4",
  gap: "#17181b",
  hatch: "#474b53",
  accent: "#9db4ff",
  layers: {
    root: "#3a3d43",
    thread: "#3a3d43",
    python: "#2c5080",
    scope: "#52457f",
    module: "#2a6040",
    operator: "#73531a",
    compiled: "#1e5f60",
    native: "#585427",
    gpu: "#83383f",
  },
  phases: {
    forward: "#2c5080",
    backward: "#7d4522",
    recompute: "#663d72",
    optimizer: "#2a6040",
    data_loading: "#655819",
    other: "#3a3d43",
    none: "#2a2c31",
  },
  heat: ["#2a2b2e", "#a84a14"],
  less: "#2a62a3",
  same: "#34363b",
  more: "#a2442c",
};

export function palette(dark: boolean): Palette {
  return dark ? DARK : LIGHT;
}

type Rgb = readonly [number, number, number];

/** Read `#rrggbb`. */
export function rgb(color: string): Rgb {
  const value = Number.parseInt(color.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Return a colour between two, as `rgb(...)`. */
export function mix(from: string, to: string, part: number): string {
  const [a, b] = [rgb(from), rgb(to)];
  const t = Math.min(Math.max(part, 0), 1);
  const at = (channel: 0 | 1 | 2) => Math.round(a[channel] + (b[channel] - a[channel]) * t);
  return `rgb(${at(0)},${at(1)},${at(2)})`;
}

// Neighbours of one layer differ a little, so that they can be told apart. Larger differences would
// make the picture restless.
const SHADES = 5;
const SHADE = 0.035;

/** Return the shades of a colour; which one a name gets is `shadeOf`. */
export function shades(color: string, dark: boolean): string[] {
  return Array.from({ length: SHADES }, (_, index) =>
    mix(color, dark ? "#000000" : "#ffffff", Math.abs(index - (SHADES - 1)) * SHADE),
  );
}

export function shadeOf(name: string): number {
  let hash = 0;
  for (let index = 0; index < name.length; index += 1) {
    hash = (hash * 31 + name.charCodeAt(index)) | 0;
  }
  return (hash >>> 0) % SHADES;
}

/** Return the contrast of two colours. Source: WCAG 2.1, relative luminance and contrast ratio. */
export function contrast(first: string, second: string): number {
  const [a, b] = [luminance(first), luminance(second)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function luminance(color: string): number {
  const [r, g, b] = rgb(color).map((each) => {
    const part = each / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
