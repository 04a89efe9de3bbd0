// Numbers pairs of whole numbers by first appearance: a hash table without an object a pair.

const EMPTY = -1;

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
    this.slots = new Int32Array(size).fill(EMPTY);
    this.first = new Int32Array(size / 2);
    this.second = new Int32Array(size / 2);
  }

  /** Return the number of a pair; a pair that is new gets the next one. */
  number(first: number, second: number): number {
    let slot = hash(first, second) & this.mask;
    for (;;) {
      const known = this.slots[slot];
      if (known === EMPTY) break;
      if (this.first[known] === first && this.second[known] === second) return known;
      slot = (slot + 1) & this.mask;
    }
    if (2 * (this.count + 1) > this.slots.length) {
      this.grow();
      return this.number(first, second);
    }
    const number = this.count++;
    this.slots[slot] = number;
    this.first[number] = first;
    this.second[number] = second;
    return number;
  }

  private grow(): void {
    const size = 2 * this.slots.length;
    this.mask = size - 1;
    this.slots = new Int32Array(size).fill(EMPTY);
    for (let number = 0; number < this.count; number++) {
      let slot = hash(this.first[number], this.second[number]) & this.mask;
      while (this.slots[slot] !== EMPTY) slot = (slot + 1) & this.mask;
      this.slots[slot] = number;
    }
    this.first = widened(this.first, size / 2);
    this.second = widened(this.second, size / 2);
  }
}

function hash(first: number, second: number): number {
  let mixed = Math.imul(first, 0x9e3779b1) ^ Math.imul(second + 1, 0x85ebca6b);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

function widened(column: Int32Array, size: number): Int32Array {
  const wide = new Int32Array(size);
  wide.set(column);
  return wide;
}
