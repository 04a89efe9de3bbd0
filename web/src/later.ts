// What later scripts take from the first, which has left it in a global: in their builds this file stands for
// `shared.ts` and Preact. Each name is a constant, so that it is one letter in a script.

const shared = (globalThis as unknown as { deepcontext: typeof import("./shared") }).deepcontext;

export const useEffect = shared.useEffect;
export const useMemo = shared.useMemo;
export const useRef = shared.useRef;
export const useState = shared.useState;
export const Fragment = shared.Fragment;
export const jsx = shared.jsx;
export const jsxs = shared.jsxs;
export const START = shared.START;
export const mix = shared.mix;
export const palette = shared.palette;
export const shadeOf = shared.shadeOf;
export const shades = shared.shades;
export const formatCount = shared.formatCount;
export const formatShare = shared.formatShare;
export const formatTime = shared.formatTime;
export const formatValue = shared.formatValue;
export const effect = shared.effect;
export const about = shared.about;
export const dark = shared.dark;
export const go = shared.go;
export const measure = shared.measure;
export const place = shared.place;
export const profile = shared.profile;
export const showNode = shared.showNode;
export const source = shared.source;
export const tree = shared.tree;
export const Bar = shared.Bar;
export const addViews = shared.addViews;
export const spread = shared.spread;
export const Empty = shared.Empty;
export const Link = shared.Link;
export const Select = shared.Select;
export const SourceLink = shared.SourceLink;
export const Subtabs = shared.Subtabs;
export const ValueCell = shared.ValueCell;
export const Waiting = shared.Waiting;
export const Surface = shared.Surface;
export const PlainTable = shared.PlainTable;
export const time = shared.time;
export const usePromise = shared.usePromise;
