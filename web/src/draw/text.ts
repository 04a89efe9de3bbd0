// Labels that fit. Measuring text is the slowest part of drawing, so each character is measured once.

import { shorterForms } from "../model/labels";

const MOST_FORMS = 20_000;
const LEAST_KEPT = 3;

export class TextFitter {
  readonly #widths = new Map<string, number>();
  readonly #forms = new Map<string, readonly (readonly [string, number])[]>();

  constructor(private readonly context: CanvasRenderingContext2D) {}

  width(text: string): number {
    let width = 0;
    for (const character of text) width += this.#characterWidth(character);
    return width;
  }

  /** Return the longest form of a name that fits into `room` pixels; "" when none does. */
  fit(name: string, room: number): string {
    const forms = this.#formsOf(name);
    for (const [form, width] of forms) if (width <= room) return form;
    return this.#cut(forms[forms.length - 1]?.[0] ?? name, room);
  }

  #cut(text: string, room: number): string {
    let left = room - this.#characterWidth("…");
    let kept = "";
    for (const character of text) {
      left -= this.#characterWidth(character);
      if (left < 0) break;
      kept += character;
    }
    return kept.length < LEAST_KEPT ? "" : `${kept}…`;
  }

  #formsOf(name: string): readonly (readonly [string, number])[] {
    const known = this.#forms.get(name);
    if (known) return known;
    if (this.#forms.size > MOST_FORMS) this.#forms.clear();
    const forms = shorterForms(name).map((form) => [form, this.width(form)] as const);
    this.#forms.set(name, forms);
    return forms;
  }

  #characterWidth(character: string): number {
    const known = this.#widths.get(character);
    if (known !== undefined) return known;
    const width = this.context.measureText(character).width;
    this.#widths.set(character, width);
    return width;
  }
}
