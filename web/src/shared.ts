// What later scripts take from the first: all run one copy of each module.

export { useEffect, useMemo, useRef, useState } from "preact/hooks";
export { Fragment, jsx, jsxs } from "preact/jsx-runtime";
export { Surface } from "./draw/surface";
export { START } from "./model/address";
export { mix, palette, shadeOf, shades } from "./model/colors";
export { formatCount, formatShare, formatTime, formatValue } from "./model/format";
export { type Column, PlainTable, time } from "./parts/plain_table";
export { usePromise } from "./parts/use_promise";
export { effect } from "./signals";
export { about, dark, go, measure, place, profile, showNode, source, tree } from "./state";
export { Bar } from "./views/bar";
export { addViews, spread } from "./views/later_views";
export { Empty, Link, Select, SourceLink, Subtabs, ValueCell, Waiting } from "./views/parts";
