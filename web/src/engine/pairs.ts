// Numbers pairs of whole numbers by first appearance: a hash table without an object a pair.

import { doubled } from "./doubled";

// A slot holds a pair and its number, counted from 1, side by side: one miss of the cache a look.
const STRIDE = 4;

export class Pairs {
  private slots: Int32Array;
  private mask: number;
  /** The two numbers of each pair. */
  first: Int32Array;
  second: Int32Array;
  count = 0;

  constructor(expected: number) {
    let size = 16;
    while (size < 2 * expected) size *= 2;
    this.mask = size - 1;
    this.slots = new Int32Array(STRIDE * size);
    this.first = new Int32Array(size / 2);
    this.second = new Int32Array(size / 2);
  }

  /** Return the number of a pair; a pair that is new gets the next one. */
  number(first: number, second: number): number {
    const { slots } = this;
    let at = STRIDE * (hash(first, second) & this.mask);
    for (; slots[at + 2] !== 0; at = (at + STRIDE) & (slots.length - 1)) {
      if (slots[at] === first && slots[at + 1] === second) return slots[at + 2] - 1;
    }
    if (this.count === this.first.length) {
      this.grow();
      return this.number(first, second);
    }
    const number = this.count++;
    this.first[number] = first;
    this.second[number] = second;
    slots[at] = first;
    slots[at + 1] = second;
    slots[at + 2] = this.count;
    return number;
  }

  private grow(): void {
    this.first = doubled(this.first);
    this.second = doubled(this.second);
    this.mask = 2 * this.mask + 1;
    this.slots = new Int32Array(2 * this.slots.length);
    const { slots } = this;
    for (let number = 0; number < this.count; number++) {
      let at = STRIDE * (hash(this.first[number], this.second[number]) & this.mask);
      while (slots[at + 2] !== 0) at = (at + STRIDE) & (slots.length - 1);
      slots[at] = this.first[number];
      slots[at + 1] = this.second[number];
      slots[at + 2] = number + 1;
    }
  }
}

function hash(first: number, second: number): number {
  let mixed = Math.imul(first, 0x9e3779b1) ^ Math.imul(second + 1, 0x85ebca6b);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
