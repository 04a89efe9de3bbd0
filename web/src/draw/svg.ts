// A flame graph as an SVG file: all its levels, of the part of the width that is shown.

import type { Range } from "../model/range";
import { FlamePainter, type Scene } from "./flame_painter";
import { FONT } from "./surface";

/** Draws on no canvas: what it would draw there is collected. */
export class SvgPainter extends FlamePainter {
  readonly #parts: string[] = [];

  constructor() {
    super(document.createElement("canvas"));
    const { context } = this;
    const add = (tag: string, place: readonly number[], paint: string, text = "") => {
      const names = ["x", "y", "width", "height"];
      const where = place.map((at, index) => `${names[index]}="${+at.toFixed(2)}"`).join(" ");
      this.#parts.push(
        `<${tag} ${where} ${paint} opacity="${context.globalAlpha}">${text}</${tag}>`,
      );
    };
    Object.assign(context, {
      fillRect: (...place: number[]) => add("rect", place, `fill="${context.fillStyle}"`),
      strokeRect: (...place: number[]) =>
        add("rect", place, `fill="none" stroke="${context.strokeStyle}"`),
      fillText: (text: string, ...place: number[]) =>
        add("text", place, `fill="${context.fillStyle}"`, escaped(text)),
    });
  }

  override resize(width: number, height: number): void {
    this.width = width;
    this.height = height;
  }

  picture(scene: Scene, shown: Range, width: number): string {
    this.paintAll(scene, shown, width);
    const head = `viewBox="0 0 ${width} ${this.height}" style='font:${FONT}' dominant-baseline="middle"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${head}>${this.#parts.join("")}</svg>\n`;
  }
}

function escaped(text: string): string {
  return text
    .replace(/\p{Cc}/gu, "\ufffd")
    .replace(/[&<]/g, (mark) => (mark === "&" ? "&amp;" : "&lt;"));
}
