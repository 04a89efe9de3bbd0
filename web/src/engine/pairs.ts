// Numbers pairs of whole numbers by first appearance: a hash table without an object a pair.

// A slot holds a pair and its number, counted from 1, side by side: one miss of the cache a look.
const STRIDE = 4;

export class Pairs {
  private readonly slots: Int32Array;
  private count = 0;

  /** `most` is how many different pairs there can be. */
  constructor(most: number) {
    let size = 16;
    while (size < 2 * most) size *= 2;
    this.slots = new Int32Array(STRIDE * size);
  }

  /** Return the number of a pair; a pair that is new gets the next one. */
  number(first: number, second: number): number {
    const { slots } = this;
    const mask = slots.length - 1;
    let at = (STRIDE * hash(first, second)) & mask;
    for (; slots[at + 2] !== 0; at = (at + STRIDE) & mask) {
      if (slots[at] === first && slots[at + 1] === second) return slots[at + 2] - 1;
    }
    slots[at] = first;
    slots[at + 1] = second;
    slots[at + 2] = ++this.count;
    return this.count - 1;
  }
}

function hash(first: number, second: number): number {
  let mixed = Math.imul(first, 0x9e3779b1) ^ Math.imul(second + 1, 0x85ebca6b);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x2c1b3c6d);
  return mixed ^ (mixed >>> 13);
}
