// A canvas to draw boxes with labels on. Knows pixels, no events and no state.

import { TextFitter } from "./text";

export const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

export class Surface {
  protected readonly context: CanvasRenderingContext2D;
  protected readonly fitter: TextFitter;
  protected width = 0;
  protected height = 0;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser cannot draw on a canvas");
    this.context = context;
    context.font = FONT;
    this.fitter = new TextFitter(context);
  }

  /** Set the size in CSS pixels. */
  resize(width: number, height: number): void {
    const { canvas, context } = this;
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = Math.max(Math.round(width * ratio), 1);
    canvas.height = Math.max(Math.round(height * ratio), 1);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
  }

  protected clear(color: string): void {
    this.context.globalAlpha = 1;
    this.context.fillStyle = color;
    this.context.fillRect(0, 0, this.width, this.height);
  }
}
