// The nodes of the graph as a table to read line by line: the graph's text equivalent.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, formatTime, formatValue } from "../model/format";
import { callsAt, type Layout, pathTo } from "../model/layout";
import { changeOf, nodeName, sideText } from "./node_tip";
import { Dot, ValueCell } from "./parts";
import { useWindowed } from "./windowed";

export interface TreeTableProps {
  readonly layout: Layout;
  readonly selected: number;
  readonly matches: Uint8Array | null;
  readonly onSelect: (node: number) => void;
  readonly backwards: boolean;
  /** Node of the first row: a root without information may be left out. */
  readonly first?: number;
  readonly label?: string | undefined;
  /** Names of the columns after the first, where they are not those of a tree of costs. */
  readonly head?: readonly string[] | undefined;
  readonly onKey?: ((event: KeyboardEvent, node: number) => boolean) | undefined;
}

const ROW_HEIGHT = 26;
const INDENT = 14;
const SIDEWAYS = 120;
/** What every name has, however deep it stands and however narrow the window is. */
const NAME_WIDTH = 180;
// Open at first: the path along the largest child, and nodes of at least this part of the whole.
const OPEN_PART = 0.3;

export function TreeTable(props: TreeTableProps) {
  const { layout, selected, backwards } = props;
  const [open, setOpen] = useState<ReadonlySet<number>>(() => opened(layout));
  useEffect(() => setOpen(opened(layout)), [layout]);
  useEffect(() => {
    if (selected < 0) return;
    const above = pathTo(layout, selected).slice(0, -1);
    if (above.some((node) => !open.has(node))) setOpen(new Set([...open, ...above]));
  }, [selected]);
  const rows = useMemo(
    () => visibleRows(layout, open, props.first ?? 0),
    [layout, open, props.first],
  );
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => scrollTo(rows.indexOf(selected)), [selected, rows]);
  const { first, last } = useWindowed(box, rows.length, ROW_HEIGHT);

  function toggle(node: number, wanted = !open.has(node)): void {
    const next = new Set(open);
    if (!wanted) next.delete(node);
    // A chain of only children opens at once.
    for (let each = node; wanted && each < layout.count; each += 1) {
      next.add(each);
      if (layout.end[each + 1] !== layout.end[each]) break;
    }
    setOpen(next);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (selected >= 0 && props.onKey?.(event, selected)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const index = rows.indexOf(selected);
    const hasChildren = selected >= 0 && layout.end[selected] > selected + 1;
    let next = -1;
    const sideways = ["ArrowLeft", "ArrowRight"].indexOf(event.key);
    if (event.shiftKey && sideways >= 0) box.current?.scrollBy(sideways ? SIDEWAYS : -SIDEWAYS, 0);
    else if (event.key === "ArrowDown") next = rows[Math.min(index + 1, rows.length - 1)];
    else if (event.key === "ArrowUp") next = rows[Math.max(index - 1, 0)];
    else if (event.key === "ArrowRight" && index >= 0) {
      if (hasChildren && !open.has(selected)) toggle(selected, true);
      else next = rows[Math.min(index + 1, rows.length - 1)];
    } else if (event.key === "ArrowLeft" && index >= 0) {
      if (hasChildren && open.has(selected)) toggle(selected, false);
      else next = Math.max(layout.parent[selected], props.first ?? 0);
    } else if (event.key === "Enter" && index >= 0) toggle(selected);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (next < 0) return;
    props.onSelect(next);
    scrollTo(rows.indexOf(next));
  }

  function scrollTo(index: number): void {
    const element = box.current;
    if (!element || index < 0) return;
    const y = (index + 1) * ROW_HEIGHT;
    if (y - ROW_HEIGHT < element.scrollTop) element.scrollTop = y - ROW_HEIGHT;
    else if (y + ROW_HEIGHT > element.scrollTop + element.clientHeight) {
      element.scrollTop = y + ROW_HEIGHT - element.clientHeight;
    }
  }

  // In a tree of callers, rows have neither self cost nor calls.
  const isLean = backwards && !layout.calls;
  return (
    <div
      class={`grid-box${layout.sides ? " sides" : isLean ? " lean" : ""}`}
      style={{ "--others": layout.totals.length - 1 }}
      ref={box}
      tabIndex={0}
      role="treegrid"
      aria-label={props.label ?? "Call tree"}
      aria-activedescendant={selected >= 0 ? `row-${selected}` : undefined}
      aria-rowcount={rows.length}
      onKeyDown={onKeyDown}
    >
      <div class="grid-head tree-grid" role="row">
        <span role="columnheader">function</span>
        {(props.head ?? headOf(layout, backwards)).map((name, index) => (
          <span role="columnheader" key={index} class="clip" title={name}>
            {name}
          </span>
        ))}
      </div>
      <div style={{ height: `${rows.length * ROW_HEIGHT}px`, position: "relative" }}>
        {rows.slice(first, last).map((node, index) => (
          <Row
            key={node}
            {...props}
            node={node}
            top={(first + index) * ROW_HEIGHT}
            index={first + index}
            isOpen={open.has(node)}
            onToggle={() => toggle(node)}
          />
        ))}
      </div>
    </div>
  );
}

function Row(
  props: TreeTableProps & {
    node: number;
    top: number;
    index: number;
    isOpen: boolean;
    onToggle: () => void;
  },
) {
  const { layout, node } = props;
  const func = layout.func[node];
  const hasChildren = layout.end[node] > node + 1;
  const isFaint = props.matches !== null && !props.matches[func];
  return (
    <div
      class={`grid-row tree-grid${node === props.selected ? " chosen" : ""}${isFaint ? " faint" : ""}`}
      role="row"
      id={`row-${node}`}
      aria-level={layout.depth[node] + 1}
      aria-expanded={hasChildren ? props.isOpen : undefined}
      aria-selected={node === props.selected}
      aria-rowindex={props.index + 1}
      style={{ top: `${props.top}px` }}
      onClick={() => props.onSelect(node)}
      onDblClick={props.onToggle}
    >
      <span
        role="gridcell"
        class="tree-name"
        style={{ paddingLeft: `min(${layout.depth[node] * INDENT}px, 100% - ${NAME_WIDTH}px)` }}
      >
        <button
          type="button"
          class="twist"
          tabIndex={-1}
          aria-label={props.isOpen ? "close" : "open"}
          style={{ visibility: hasChildren ? "visible" : "hidden" }}
          onClick={(event) => {
            event.stopPropagation();
            props.onToggle();
          }}
        >
          {props.isOpen ? "▾" : "▸"}
        </button>
        <Dot layer={layout.functions.layer[func]} />
        <span class="clip" title={nodeName(layout, node)}>
          {nodeName(layout, node)}
        </span>
      </span>
      {!layout.sides && (
        <span role="gridcell">
          <ValueCell value={layout.value[node]} total={layout.total} unit={layout.unit} />
        </span>
      )}
      {cellsOf(layout, node, props.backwards).map((text, index) => (
        <span role="gridcell" class="number" key={index}>
          {text}
        </span>
      ))}
    </div>
  );
}

/** Return the texts of a row after its name, and after its value in a tree of one profile. */
function cellsOf(layout: Layout, node: number, backwards: boolean): string[] {
  const { sides, unit } = layout;
  if (sides) {
    const [base] = sides[node];
    return sides[node].flatMap((value, side) =>
      side ? [sideText(value, unit), changeOf(base, value, unit)] : [sideText(value, unit)],
    );
  }
  const self = backwards ? "" : formatValue(layout.exclusive[node], unit);
  const calls = callsAt(layout, node);
  return calls ? [self, formatCount(calls.count), formatTime(calls.mean)] : [self, "", ""];
}

function headOf(layout: Layout, backwards: boolean): readonly string[] {
  const calls = layout.calls ? ["calls", "per call"] : ["", ""];
  return backwards ? ["cost", "", ...calls] : ["total", "self", ...calls];
}

function visibleRows(layout: Layout, open: ReadonlySet<number>, first: number): number[] {
  const rows: number[] = [];
  for (let node = first; node < layout.count; ) {
    rows.push(node);
    node = open.has(node) ? node + 1 : layout.end[node];
  }
  return rows;
}

function opened(layout: Layout): Set<number> {
  const open = new Set<number>([0]);
  for (let node = 0; node < layout.count; node += 1) {
    if (layout.width[node] >= OPEN_PART) open.add(node);
  }
  return open;
}
