// Draws the visible part of a step on a canvas. Knows pixels, no events and no state.

import { Surface } from "../draw/surface";
import type { Palette } from "../model/colors";
import { formatTime } from "../model/format";
import { firstAfter, type Placed, type PlacedLane, ROW, ticks } from "./placing";

export const AXIS = 20;
const PAD = 4;
const LEAST_LABEL = 24;
const TICK_EVERY = 110;

/** A range of time, in ns since the step's begin. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A span of a lane. */
export interface Chosen {
  readonly lane: number;
  readonly span: number;
}

export interface Scene {
  readonly placed: Placed;
  readonly fills: readonly string[];
  readonly lineFill: string;
  readonly matches: Uint8Array | null;
  readonly palette: Palette;
  readonly chosen: Chosen | null;
}

export class TimePainter extends Surface {
  /** `scroll`: pixels of the lanes above the canvas. */
  paint(scene: Scene, range: Range, scroll: number): void {
    const { height } = this;
    this.clear(scene.palette.gap);
    scene.placed.lanes.forEach((lane, index) => {
      const next = scene.placed.lanes[index + 1]?.top ?? scene.placed.height;
      if (next < scroll || lane.top > scroll + height) return;
      this.#paintLane(scene, lane, range, AXIS - scroll);
    });
    this.#outline(scene, range, AXIS - scroll);
    this.#paintAxis(scene, range);
  }

  #paintLane(scene: Scene, lane: PlacedLane, range: Range, offset: number): void {
    const { context } = this;
    const scale = this.width / (range.to - range.from);
    context.globalAlpha = 1;
    context.fillStyle = scene.palette.faint;
    context.fillText(lane.name, PAD, lane.top + offset + ROW / 2);
    for (const run of lane.lines) {
      const { place } = scene.placed.step.nodes[run.node];
      const left = (run.begin - range.from) * scale;
      const right = (run.end - range.from) * scale;
      context.globalAlpha = 0.75;
      this.#box(left, right, lane.spansTop - ROW + offset, scene.lineFill);
      this.#label(`${place.shown}:${place.line}`, left, right, lane.spansTop - ROW + offset, scene);
    }
    // Spans that begin before the left edge may reach into view: those around the first one in view.
    const last = firstAfter(lane.begin, range.to);
    let span = firstAfter(lane.begin, range.from);
    for (let outer = span > 0 ? span - 1 : -1; outer >= 0; outer = lane.parent[outer]) {
      this.#paintSpan(scene, lane, outer, range, offset, null);
    }
    const drawn = new Float64Array(64).fill(-1);
    for (; span < last; span += 1) this.#paintSpan(scene, lane, span, range, offset, drawn);
    if (lane.knownFrom > range.from) {
      context.globalAlpha = 0.5;
      context.fillStyle = scene.palette.hatch;
      const top = lane.spansTop + offset;
      context.fillRect(0, top, (lane.knownFrom - range.from) * scale, ROW - 1);
    }
  }

  #paintSpan(
    scene: Scene,
    lane: PlacedLane,
    span: number,
    range: Range,
    offset: number,
    drawn: Float64Array | null,
  ): void {
    const scale = this.width / (range.to - range.from);
    const left = (lane.begin[span] - range.from) * scale;
    const right = (lane.end[span] - range.from) * scale;
    const depth = lane.depth[span];
    // Of spans within one pixel of a row, one is drawn.
    if (right < 0 || (drawn && depth < 64 && right - left < 1 && left < drawn[depth])) return;
    if (drawn && depth < 64) drawn[depth] = Math.max(right, left + 1);
    const top = lane.spansTop + depth * ROW + offset;
    if (top < 0 || top > this.height) return;
    const node = lane.node[span];
    const isFaint = scene.matches && !scene.matches[node];
    this.context.globalAlpha = isFaint ? 0.25 : 1;
    this.#box(left, right, top, scene.fills[node]);
    if (!isFaint) this.#label(scene.placed.step.nodes[node].name, left, right, top, scene);
  }

  #box(left: number, right: number, top: number, fill: string): void {
    const from = Math.max(left, 0);
    const to = Math.min(right, this.width);
    this.context.fillStyle = fill;
    this.context.fillRect(from, top, Math.max(to - from - 0.5, 0.6), ROW - 1);
  }

  #label(name: string, left: number, right: number, top: number, scene: Scene): void {
    const from = Math.max(left, 0);
    const room = Math.min(right, this.width) - from - 2 * PAD;
    if (room < LEAST_LABEL) return;
    this.context.globalAlpha = 1;
    this.context.fillStyle = scene.palette.label;
    this.context.fillText(this.fitter.fit(name, room), from + PAD, top + ROW / 2);
  }

  #outline(scene: Scene, range: Range, offset: number): void {
    const { chosen, placed, palette } = scene;
    const lane = chosen && placed.lanes[chosen.lane];
    if (!lane) return;
    const scale = this.width / (range.to - range.from);
    const left = (lane.begin[chosen.span] - range.from) * scale;
    const right = (lane.end[chosen.span] - range.from) * scale;
    const top = lane.spansTop + lane.depth[chosen.span] * ROW + offset;
    this.context.globalAlpha = 1;
    this.context.strokeStyle = palette.accent;
    this.context.lineWidth = 2;
    this.context.strokeRect(left, top, Math.max(right - left, 2), ROW - 1);
  }

  #paintAxis(scene: Scene, range: Range): void {
    const { context, width } = this;
    const scale = width / (range.to - range.from);
    context.globalAlpha = 1;
    context.fillStyle = scene.palette.gap;
    context.fillRect(0, 0, width, AXIS);
    context.fillStyle = scene.palette.faint;
    for (const each of ticks(range.from, range.to, Math.max(width / TICK_EVERY, 1))) {
      const at = (each - range.from) * scale;
      context.fillRect(at, AXIS - 5, 1, 5);
      context.fillText(each ? formatTime(each) : "0", at + PAD, AXIS / 2);
    }
  }
}
