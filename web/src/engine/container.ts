// Named arrays and a header in one block of bytes; the counterpart is src/deepcontext/ui/web/container.py.

export type Column = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;

interface Described {
  readonly type: "u8" | "u16" | "u32" | "i64" | "f64";
  readonly at: number;
  readonly length: number;
}

const WIDTH = { u8: 1, u16: 2, u32: 4, i64: 8, f64: 8 } as const;
const HIGH = 2 ** 32;

/** The arrays are decoded when they are asked for, and kept by whoever asked. */
export class Container<Header> {
  private constructor(
    readonly header: Header,
    private readonly arrays: Record<string, Described>,
    private readonly bytes: Uint8Array,
  ) {}

  static read<Header>(bytes: Uint8Array): Container<Header> {
    const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const text = new TextDecoder().decode(bytes.subarray(4, 4 + size));
    const { header, arrays } = JSON.parse(text) as {
      header: Header;
      arrays: Record<string, Described>;
    };
    return new Container(header, arrays, bytes.subarray(4 + size));
  }

  has(name: string): boolean {
    return name in this.arrays;
  }

  /** Return an array; 64-bit integers become doubles, which are exact up to 2**53. */
  array(name: string): Column {
    const described = this.arrays[name];
    if (!described) throw new Error(`the page has no column '${name}'`);
    const { type, at, length } = described;
    const width = WIDTH[type];
    const planes = this.bytes.subarray(at, at + width * length);
    if (type === "u8") return planes;
    if (type === "u16") {
      const plain = new Uint16Array(length);
      for (let at = 0; at < length; at++) plain[at] = planes[at] | (planes[length + at] << 8);
      return plain;
    }
    const plain = unshuffled(planes, width / 4, length);
    if (type === "u32") return plain;
    return type === "f64" ? new Float64Array(plain.buffer) : doubles(plain, length);
  }
}

/** The first bytes of all numbers come first, then the second bytes: this compresses better. */
function unshuffled(planes: Uint8Array, words: number, length: number): Uint32Array<ArrayBuffer> {
  const plain = new Uint32Array(words * length);
  for (let word = 0; word < words; word++) {
    const four = planes.subarray(4 * word * length);
    for (let at = 0; at < length; at++) {
      plain[at * words + word] =
        four[at] |
        (four[length + at] << 8) |
        (four[2 * length + at] << 16) |
        (four[3 * length + at] << 24);
    }
  }
  return plain;
}

function doubles(low: Uint32Array<ArrayBuffer>, length: number): Float64Array {
  const high = new Int32Array(low.buffer);
  const values = new Float64Array(length);
  for (let index = 0; index < length; index++) {
    values[index] = high[2 * index + 1] * HIGH + low[2 * index];
  }
  return values;
}
