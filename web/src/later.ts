// What later scripts take from the first, which has left it in a global: in their builds this file stands for
// every module outside their folder. Each name is a constant, so that it is one letter in a script.

const { shared } = globalThis as unknown as typeof import("./shared");

export const Fragment = shared.Fragment;
export const h = shared.h;
export const useEffect = shared.useEffect;
export const useMemo = shared.useMemo;
export const useRef = shared.useRef;
export const useState = shared.useState;
export const openMore = shared.openMore;
export const START = shared.START;
export const mix = shared.mix;
export const palette = shared.palette;
export const layerFills = shared.layerFills;
export const formatCount = shared.formatCount;
export const formatShare = shared.formatShare;
export const formatTime = shared.formatTime;
export const formatValue = shared.formatValue;
export const about = shared.about;
export const dark = shared.dark;
export const go = shared.go;
export const measure = shared.measure;
export const place = shared.place;
export const profile = shared.profile;
export const showNode = shared.showNode;
export const tree = shared.tree;
export const Bar = shared.Bar;
export const Legend = shared.Legend;
export const Stack = shared.Stack;
export const addViews = shared.addViews;
export const Empty = shared.Empty;
export const Link = shared.Link;
export const Select = shared.Select;
export const SourceLink = shared.SourceLink;
export const Subtabs = shared.Subtabs;
export const ValueCell = shared.ValueCell;
export const Waiting = shared.Waiting;
export const Surface = shared.Surface;
export const Pointer = shared.Pointer;
export const PlainTable = shared.PlainTable;
export const time = shared.time;
export const useAnswer = shared.useAnswer;
