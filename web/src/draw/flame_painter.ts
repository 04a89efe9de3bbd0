// Draws the visible part of a flame graph on a canvas. Knows pixels, no events and no state.

import type { Palette } from "../model/colors";
import type { Layout } from "../model/layout";
import type { Range } from "../model/range";
import { Surface } from "./surface";

export const ROW = 20;
const PAD = 5;
const LEAST_LABEL = 22;
const SHARE_FROM = 190;
/** Height of the mark that stands for boxes too narrow to draw, and the period of its strokes. */
const STUB = 6;
const STROKE = 4;
const LEAST_REST = 2 * STROKE;

/** Which part of a graph is on the canvas. */
export interface Viewport {
  /** Part of the graph's width at the left and right edge, 0 to 1. */
  readonly from: number;
  readonly to: number;
  /** Level at the top edge, with a fraction; at the bottom edge when `upward`. */
  readonly scroll: number;
}

/** What is drawn besides the layout. */
export interface Scene {
  readonly layout: Layout;
  readonly fills: (node: number) => string;
  readonly labels: (node: number) => string;
  readonly shares: ((node: number) => string) | null;
  readonly matches: Uint8Array | null;
  readonly selected: number;
  readonly hovered: number;
  readonly same: number;
  readonly palette: Palette;
  readonly upward: boolean;
  /** Level that is drawn first: a root without information may be left out. */
  readonly first: number;
}

export class FlamePainter extends Surface {
  /** Paint all levels of a part of the width, as high as they are. */
  paintAll(scene: Scene, shown: Range, width: number): void {
    this.resize(width, ROW * (scene.layout.deepest + 1 - scene.first));
    this.paint(scene, { ...shown, scroll: 0 });
  }

  paint(scene: Scene, viewport: Viewport): number {
    this.clear(scene.palette.gap);
    const boxes = this.#visible(scene, viewport);
    this.#markRests(scene, viewport, boxes);
    this.#fillBoxes(scene, boxes);
    this.#underlineMatches(scene, boxes);
    this.#writeLabels(scene, boxes);
    this.#outline(scene, boxes);
    return boxes.length;
  }

  /** Return node, x, y and width of every box on the canvas, four numbers each. */
  #visible(scene: Scene, viewport: Viewport): number[] {
    const { layout } = scene;
    const scale = this.width / (viewport.to - viewport.from);
    const rows = this.height / ROW;
    const boxes: number[] = [];
    let node = 0;
    while (node < layout.count) {
      const level = layout.depth[node] - scene.first;
      const left = (layout.left[node] - viewport.from) * scale;
      const width = layout.width[node] * scale;
      if (width < 0.5 || left > this.width || left + width < 0 || level > viewport.scroll + rows) {
        node = layout.end[node];
        continue;
      }
      if (level >= 0 && level + 1 >= viewport.scroll) {
        const row = (level - viewport.scroll) * ROW;
        boxes.push(node, left, scene.upward ? this.height - row - ROW : row, width);
      }
      node += 1;
    }
    return boxes;
  }

  /** Mark where boxes are left out: empty space alone would mean that a box calls nothing. */
  #markRests(scene: Scene, viewport: Viewport, boxes: readonly number[]): void {
    const { context } = this;
    const { layout } = scene;
    const scale = this.width / (viewport.to - viewport.from);
    context.fillStyle = scene.palette.hatch;
    for (let index = 0; index < boxes.length; index += 4) {
      const node = boxes[index];
      const width = layout.restWidth[node] * scale;
      if (width < LEAST_REST) continue;
      const x = (layout.restLeft[node] - viewport.from) * scale;
      const right = Math.min(x + width, this.width);
      const y = scene.upward ? boxes[index + 2] - STUB : boxes[index + 2] + ROW;
      // Aligned to a grid of the canvas, so that neighbouring marks look like one.
      const first = Math.max(Math.ceil(Math.max(x, 0) / STROKE) * STROKE, 0);
      for (let stroke = first; stroke < right; stroke += STROKE) {
        context.fillRect(stroke, y, STROKE / 2, STUB);
      }
    }
  }

  #fillBoxes(scene: Scene, boxes: readonly number[]): void {
    const { context } = this;
    for (let index = 0; index < boxes.length; index += 4) {
      const [node, x, y, width] = [
        boxes[index],
        boxes[index + 1],
        boxes[index + 2],
        boxes[index + 3],
      ];
      const left = Math.max(x, 0);
      const right = Math.min(x + width, this.width);
      context.globalAlpha = this.#isFaint(scene, node) ? 0.32 : 1;
      context.fillStyle = scene.fills(node);
      context.fillRect(left, y, Math.max(right - left - (width > 3 ? 1 : 0), 0.5), ROW - 1);
    }
    context.globalAlpha = 1;
  }

  /** Mark what the search found: in every mode of colour it must stand out. */
  #underlineMatches(scene: Scene, boxes: readonly number[]): void {
    if (scene.matches === null) return;
    this.context.fillStyle = scene.palette.accent;
    for (let index = 0; index < boxes.length; index += 4) {
      if (this.#isFaint(scene, boxes[index])) continue;
      const left = Math.max(boxes[index + 1], 0);
      const right = Math.min(boxes[index + 1] + boxes[index + 3], this.width);
      const width = right - left - (boxes[index + 3] > 3 ? 1 : 0);
      this.context.fillRect(left, boxes[index + 2] + ROW - 3, Math.max(width, 0.5), 2);
    }
  }

  #writeLabels(scene: Scene, boxes: readonly number[]): void {
    const { context } = this;
    for (let index = 0; index < boxes.length; index += 4) {
      const left = Math.max(boxes[index + 1], 0);
      const room = Math.min(boxes[index + 1] + boxes[index + 3], this.width) - left - 2 * PAD;
      if (room < LEAST_LABEL - 2 * PAD) continue;
      const node = boxes[index];
      const middle = boxes[index + 2] + ROW / 2;
      const label = scene.labels(node);
      context.fillStyle = this.#isFaint(scene, node) ? scene.palette.faint : scene.palette.label;
      const share = scene.shares && room > SHARE_FROM ? scene.shares(node) : "";
      const shareWidth = share ? this.fitter.width(share) + 12 : 0;
      const text = this.fitter.fit(label, room - shareWidth);
      if (!text) continue;
      context.fillText(text, left + PAD, middle);
      if (share) {
        if (!this.#isFaint(scene, node)) context.fillStyle = scene.palette.share;
        context.fillText(share, left + PAD + room - shareWidth + 12, middle);
      }
    }
  }

  #outline(scene: Scene, boxes: readonly number[]): void {
    const { context } = this;
    for (let index = 0; index < boxes.length; index += 4) {
      const node = boxes[index];
      const isSelected = node === scene.selected;
      const isSame = scene.same >= 0 && scene.layout.func[node] === scene.same;
      if (!isSelected && node !== scene.hovered && !isSame) continue;
      const left = Math.max(boxes[index + 1], 0);
      const right = Math.min(boxes[index + 1] + boxes[index + 3], this.width);
      context.strokeStyle = isSelected ? scene.palette.accent : scene.palette.label;
      context.globalAlpha = isSelected || node === scene.hovered ? 1 : 0.35;
      context.lineWidth = isSelected ? 2 : 1;
      const inset = context.lineWidth / 2;
      context.strokeRect(
        left + inset,
        boxes[index + 2] + inset,
        Math.max(right - left - 1 - 2 * inset, 1),
        ROW - 1 - 2 * inset,
      );
    }
    context.globalAlpha = 1;
  }

  #isFaint(scene: Scene, node: number): boolean {
    return scene.matches !== null && !scene.matches[scene.layout.func[node]];
  }
}
