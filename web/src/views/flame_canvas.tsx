// A flame graph to navigate in: the canvas, its mouse and keys, zoom and scrolling.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { FlamePainter, ROW, type Scene } from "../draw/flame_painter";
import { SvgPainter } from "../draw/svg";
import { type Layout, nodeAt } from "../model/layout";
import { type Direction, neighbour } from "../model/move";
import { type Range, WHOLE } from "../model/range";
import { Tooltip } from "./tooltip";

/** What other views may do with a graph on screen. */
export interface FlameHandle {
  zoomTo(node: number): void;
  select(node: number): void;
  /** What is shown as the text of an SVG file; "" where nothing is drawn. */
  picture(): string;
  /** All levels of what is shown, drawn on a canvas of their own. */
  image(): HTMLCanvasElement | null;
}

export interface FlameCanvasProps {
  readonly layout: Layout;
  readonly scene: Omit<Scene, "layout" | "selected" | "hovered">;
  readonly selected: number;
  readonly label: string;
  readonly tip: (node: number) => preact.ComponentChildren;
  readonly onSelect: (node: number) => void;
  /** The part of the width that the address names; the view follows its changes. */
  readonly shown: Range;
  /** Called with what the user zoomed in to: a node, or -1 for any part; merged where many steps are one. */
  readonly onShown: (range: Range, node: number, isMerged: boolean) => void;
  readonly onRest?: (from: number, to: number, width: number) => void;
  readonly onKey?: ((event: KeyboardEvent, node: number) => boolean) | undefined;
  readonly onHover?: (node: number) => void;
  readonly handle?: (handle: FlameHandle | null) => void;
}

const ZOOM_MS = 160;
const REST_MS = 140;
const NARROWEST = 1e-9;
/** Two ranges are the same if their ends are as near as this, in parts of the range. */
const SLACK = 1e-6;
const ARROWS: Record<string, Direction> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

export function FlameCanvas(props: FlameCanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<FlamePainter | null>(null);
  const view = useRef<Range>(props.shown);
  /** Where the view is, or moves to. */
  const goal = useRef<Range>(props.shown);
  const followed = useRef<Range>(props.shown);
  /** The goal is not in the address yet. */
  const isNew = useRef(false);
  const size = useRef({ width: 0, height: 0 });
  const now = useRef(props);
  const frame = useRef(0);
  const rest = useRef<number>(0);
  const handle = useRef<FlameHandle>({
    zoomTo: () => {},
    select: () => {},
    picture: () => "",
    image: () => null,
  });
  const [hover, setHover] = useState<{ node: number; x: number; top: number } | null>(null);
  const hovered = useRef(-1);
  now.current = props;

  const rows = props.layout.deepest + 1 - props.scene.first;

  function scrollRows(): number {
    const element = box.current;
    if (!element) return 0;
    const fromTop = element.scrollTop / ROW;
    if (!now.current.scene.upward) return fromTop;
    const most = Math.max(element.scrollHeight - element.clientHeight, 0) / ROW;
    return most - fromTop;
  }

  function paint(): void {
    frame.current = 0;
    const { layout, scene, selected } = now.current;
    painter.current?.paint(
      { ...scene, layout, selected, hovered: hovered.current },
      { ...view.current, scroll: scrollRows() },
    );
  }

  function draw(): void {
    if (!frame.current) frame.current = requestAnimationFrame(paint);
  }

  function settle(): void {
    window.clearTimeout(rest.current);
    rest.current = window.setTimeout(() => {
      if (isNew.current) now.current.onShown(goal.current, -1, true);
      isNew.current = false;
      now.current.onRest?.(view.current.from, view.current.to, size.current.width);
    }, REST_MS);
  }

  function moveTo(target: Range, animated: boolean): void {
    const start = view.current;
    goal.current = target;
    const quiet = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!animated || quiet) {
      view.current = target;
      draw();
      settle();
      return;
    }
    const began = performance.now();
    const step = (time: number) => {
      if (goal.current !== target) return;
      const part = Math.min((time - began) / ZOOM_MS, 1);
      const eased = 1 - (1 - part) ** 3;
      view.current = {
        from: start.from + (target.from - start.from) * eased,
        to: start.to + (target.to - start.to) * eased,
      };
      paint();
      if (part < 1) requestAnimationFrame(step);
      else settle();
    };
    requestAnimationFrame(step);
  }

  function zoomTo(node: number, isMerged = false): void {
    const { layout } = now.current;
    if (node < 0 || node >= layout.count || layout.width[node] <= 0) return;
    const range = boxOf(layout, node);
    isNew.current = false;
    moveTo(range, true);
    now.current.onShown(range, node, isMerged);
  }

  /** Move by a step of many: the address has where they end. */
  function stepTo(target: Range, animated: boolean): void {
    isNew.current = true;
    moveTo(target, animated);
  }

  function reveal(node: number): void {
    const { layout, scene } = now.current;
    const element = box.current;
    if (!element || node < 0) return;
    const left = layout.left[node];
    const right = left + layout.width[node];
    const scale = size.current.width / (view.current.to - view.current.from);
    if (layout.width[node] * scale < 3 || right <= view.current.from || left >= view.current.to) {
      const around = layout.parent[node] >= 0 ? layout.parent[node] : node;
      zoomTo(layout.width[around] * scale < 3 ? node : around, true);
    }
    const row = (layout.depth[node] - scene.first) * ROW;
    const y = scene.upward ? element.scrollHeight - row - ROW : row;
    if (y < element.scrollTop) element.scrollTop = y - ROW;
    else if (y + ROW > element.scrollTop + element.clientHeight) {
      element.scrollTop = y + 2 * ROW - element.clientHeight;
    }
  }

  function select(node: number): void {
    now.current.onSelect(node);
    reveal(node);
    draw();
  }

  useEffect(() => {
    if (!canvas.current || !box.current) return;
    painter.current = new FlamePainter(canvas.current);
    const observer = new ResizeObserver(() => {
      const element = box.current;
      if (!element || !painter.current) return;
      size.current = { width: element.clientWidth, height: element.clientHeight };
      painter.current.resize(element.clientWidth, element.clientHeight);
      paint();
      settle();
    });
    observer.observe(box.current);
    handle.current.zoomTo = zoomTo;
    handle.current.select = select;
    const plain = () => {
      const { layout, scene } = now.current;
      return { ...scene, layout, selected: -1, hovered: -1, same: -1 };
    };
    handle.current.picture = () =>
      new SvgPainter().picture(plain(), goal.current, size.current.width);
    handle.current.image = () => {
      const image = document.createElement("canvas");
      new FlamePainter(image).paintAll(plain(), goal.current, size.current.width);
      return image;
    };
    now.current.handle?.(handle.current);
    return () => {
      observer.disconnect();
      now.current.handle?.(null);
      window.clearTimeout(rest.current);
    };
  }, []);

  const before = useRef<Layout | null>(null);
  useLayoutEffect(() => {
    const { shown, layout } = props;
    const [old, last] = [before.current, followed.current];
    before.current = layout;
    followed.current = shown;
    const isOther = (from: Range, to: Range) =>
      Math.abs(from.from - to.from) + Math.abs(from.to - to.to) > (to.to - to.from) * SLACK;
    if (isOther(last, shown) && isOther(goal.current, shown)) moveTo(shown, old === layout);
    if (old === null && props.scene.upward && box.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
    draw();
  });

  function locate(event: MouseEvent): number {
    const element = canvas.current;
    if (!element) return -1;
    const bounds = element.getBoundingClientRect();
    const x =
      view.current.from +
      ((event.clientX - bounds.left) / bounds.width) * (view.current.to - view.current.from);
    const y = event.clientY - bounds.top;
    const row = now.current.scene.upward ? bounds.height - y : y;
    const level = Math.floor(row / ROW + scrollRows()) + now.current.scene.first;
    return nodeAt(now.current.layout, level, x);
  }

  /** Where the row of a node begins in the window. */
  function topOf(node: number): number {
    const bounds = canvas.current?.getBoundingClientRect();
    const { layout, scene } = now.current;
    const row = (layout.depth[node] - scene.first - scrollRows()) * ROW;
    return (bounds?.top ?? 0) + (scene.upward ? (bounds?.height ?? 0) - row - ROW : row);
  }

  function onMove(event: MouseEvent): void {
    const node = locate(event);
    if (node !== hovered.current) {
      hovered.current = node;
      now.current.onHover?.(node);
      draw();
    }
    setHover(node < 0 ? null : { node, x: event.clientX, top: topOf(node) });
  }

  function onLeave(): void {
    hovered.current = -1;
    now.current.onHover?.(-1);
    setHover(null);
    draw();
  }

  function onWheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY))
      return;
    event.preventDefault();
    const bounds = canvas.current?.getBoundingClientRect();
    if (!bounds) return;
    const span = view.current.to - view.current.from;
    if (!event.ctrlKey && !event.metaKey) {
      stepTo(moved(view.current.from + (event.deltaX / bounds.width) * span, span), false);
      return;
    }
    const at = (event.clientX - bounds.left) / bounds.width;
    const next = Math.min(Math.max(span * Math.exp(event.deltaY * 0.0025), NARROWEST), 1);
    stepTo(moved(view.current.from + at * (span - next), next), false);
  }

  function zoomBy(factor: number): void {
    const span = view.current.to - view.current.from;
    const next = Math.min(Math.max(span * factor, NARROWEST), 1);
    stepTo(moved(view.current.from + (span - next) / 2, next), true);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const { layout, selected, onKey } = now.current;
    const upward = now.current.scene.upward;
    if (selected >= 0 && onKey?.(event, selected)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    let direction = ARROWS[event.key];
    if (direction) {
      if (upward && direction === "up") direction = "down";
      else if (upward && direction === "down") direction = "up";
      select(neighbour(layout, selected, direction));
    } else if (event.key === "Enter" && selected >= 0) zoomTo(selected);
    else if (event.key === "Escape" || event.key === "0") zoomTo(0);
    else if (event.key === "+" || event.key === "=") zoomBy(0.6);
    else if (event.key === "-") zoomBy(1 / 0.6);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  useEffect(() => {
    const element = box.current;
    // Browsers may make Preact's listeners passive; this one must be able to prevent scrolling.
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, []);

  return (
    <div class={props.scene.upward ? "flame upward" : "flame"} ref={box} onScroll={draw}>
      <div class="flame-space" style={{ height: `${rows * ROW}px` }}>
        <canvas
          ref={canvas}
          class="flame-canvas"
          tabIndex={0}
          role="img"
          aria-label={props.label}
          onMouseMove={onMove}
          onMouseLeave={onLeave}
          onClick={(event) => {
            const node = locate(event);
            if (node < 0) return;
            props.onSelect(node);
            zoomTo(node);
          }}
          onContextMenu={(event) => {
            const node = locate(event);
            if (node < 0) return;
            event.preventDefault();
            props.onSelect(node);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      {hover && hover.node < props.layout.count && (
        <Tooltip x={hover.x} above={hover.top} below={hover.top + ROW} upward={props.scene.upward}>
          {props.tip(hover.node)}
        </Tooltip>
      )}
    </div>
  );
}

function moved(from: number, span: number): Range {
  const start = Math.min(Math.max(from, 0), 1 - span);
  return { from: start, to: start + span };
}

/** Return the part of the width that a box spans. */
export function boxOf(layout: Layout, node: number): Range {
  if (node <= 0) return WHOLE;
  return { from: layout.left[node], to: layout.left[node] + layout.width[node] };
}
