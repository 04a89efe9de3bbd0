// A step to navigate in: the canvas, its mouse and keys, zoom and scrolling.

import { useEffect, useRef, useState } from "preact/hooks";
import { AXIS, type Chosen, type Range, type Scene, TimePainter } from "./painter";
import { type Move, moved, type PlacedLane, spanAt } from "./placing";

/** ns: below it a picosecond would be a pixel. */
const NARROWEST = 20;
const MOVES: Record<string, Move> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

export function StepCanvas(props: {
  scene: Scene;
  label: string;
  tip: (chosen: Chosen) => string;
  onChoose: (chosen: Chosen | null) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<TimePainter | null>(null);
  const whole = { from: 0, to: Math.max(props.scene.placed.step.duration_ns, 1) };
  const view = useRef<Range>(whole);
  const now = useRef(props);
  const frame = useRef(0);
  const drag = useRef<{ x: number; range: Range; isMoved: boolean } | null>(null);
  const pointer = useRef(0.5);
  const [hover, setHover] = useState("");
  now.current = props;

  function draw(): void {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      painter.current?.paint(now.current.scene, view.current, box.current?.scrollTop ?? 0);
    });
  }

  function look(from: number, span: number): void {
    const width = Math.min(Math.max(span, NARROWEST), whole.to);
    const start = Math.min(Math.max(from, 0), whole.to - width);
    view.current = { from: start, to: start + width };
    draw();
  }

  function zoom(factor: number, at = pointer.current): void {
    const { from, to } = view.current;
    const span = Math.min(Math.max((to - from) * factor, NARROWEST), whole.to);
    look(from + at * (to - from - span), span);
  }

  function pan(part: number): void {
    const { from, to } = view.current;
    look(from + part * (to - from), to - from);
  }

  useEffect(() => {
    const element = box.current;
    if (!element || !canvas.current) return;
    painter.current = new TimePainter(canvas.current);
    const observer = new ResizeObserver(() => {
      painter.current?.resize(element.clientWidth, element.clientHeight);
      draw();
    });
    observer.observe(element);
    const onWheel = (event: WheelEvent) => {
      const isZoom = event.ctrlKey || event.metaKey;
      if (!isZoom && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (isZoom) zoom(Math.exp(event.deltaY * 0.0025), partOf(event));
      else pan(event.deltaX / element.clientWidth);
    };
    // Browsers may make Preact's listeners passive; this one must be able to prevent scrolling.
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", onWheel);
    };
  }, []);
  useEffect(draw);
  useEffect(() => look(0, whole.to), [props.scene.placed]);

  function partOf(event: MouseEvent): number {
    const bounds = canvas.current?.getBoundingClientRect();
    return bounds ? (event.clientX - bounds.left) / bounds.width : 0.5;
  }

  function locate(event: MouseEvent): Chosen | null {
    const bounds = canvas.current?.getBoundingClientRect();
    if (!bounds) return null;
    const { from, to } = view.current;
    const moment = from + partOf(event) * (to - from);
    const y = event.clientY - bounds.top - AXIS + (box.current?.scrollTop ?? 0);
    const { lanes, height } = now.current.scene.placed;
    const lane = lanes.findIndex(
      (each, index) => y >= each.top && y < (lanes[index + 1]?.top ?? height),
    );
    if (lane < 0) return null;
    const span = spanAt(lanes[lane], moment, y, (2 * (to - from)) / bounds.width);
    return span < 0 ? null : { lane, span };
  }

  function choose(chosen: Chosen | null, isShown: boolean): void {
    now.current.onChoose(chosen);
    const lane = chosen && now.current.scene.placed.lanes[chosen.lane];
    if (isShown && lane) reveal(lane, chosen.span);
    draw();
  }

  function reveal(lane: PlacedLane, span: number): void {
    const { from, to } = view.current;
    const [begin, end] = [lane.begin[span], lane.end[span]];
    if (end < from || begin > to || end - begin < (to - from) / 500) {
      const width = Math.min(to - from, (end - begin) * 20);
      look((begin + end - width) / 2, width);
    }
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { chosen, placed } = now.current.scene;
    const move = MOVES[event.key];
    const actions: Record<string, () => void> = {
      w: () => zoom(0.7),
      s: () => zoom(1 / 0.7),
      a: () => pan(-0.2),
      d: () => pan(0.2),
      "+": () => zoom(0.7, 0.5),
      "-": () => zoom(1 / 0.7, 0.5),
      "0": () => look(0, whole.to),
      Escape: () => look(0, whole.to),
    };
    if (move) {
      const lane = placed.lanes.findIndex((each) => each.node.length);
      if (chosen) {
        const span = moved(placed.lanes[chosen.lane], chosen.span, move);
        choose({ lane: chosen.lane, span }, true);
      } else if (lane >= 0) choose({ lane, span: 0 }, true);
    } else if (event.key === "Enter" && chosen) {
      const lane = placed.lanes[chosen.lane];
      look(lane.begin[chosen.span], lane.end[chosen.span] - lane.begin[chosen.span]);
    } else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  }

  function onPointerMove(event: PointerEvent): void {
    pointer.current = partOf(event);
    const held = drag.current;
    if (!held) {
      const found = locate(event);
      setHover(found ? props.tip(found) : "");
      return;
    }
    const width = canvas.current?.clientWidth || 1;
    const span = held.range.to - held.range.from;
    if (Math.abs(event.clientX - held.x) > 3) held.isMoved = true;
    if (held.isMoved) look(held.range.from - ((event.clientX - held.x) / width) * span, span);
  }

  return (
    <>
      <div class="flame" ref={box} onScroll={draw}>
        <div class="flame-space" style={{ height: `${props.scene.placed.height + AXIS}px` }}>
          <canvas
            ref={canvas}
            class="flame-canvas"
            tabIndex={0}
            role="img"
            aria-label={props.label}
            onPointerDown={(event) => {
              drag.current = { x: event.clientX, range: view.current, isMoved: false };
              canvas.current?.setPointerCapture(event.pointerId);
            }}
            onPointerMove={onPointerMove}
            onPointerUp={(event) => {
              if (!drag.current?.isMoved) choose(locate(event), false);
              drag.current = null;
            }}
            onPointerLeave={() => setHover("")}
            onKeyDown={onKeyDown}
          />
        </div>
      </div>
      <p class="said time-said">{hover || "\u00a0"}</p>
    </>
  );
}
