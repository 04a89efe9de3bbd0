// Functions: frames that views merge, because they differ only in the line of the call.

import type { Profile } from "./profile";

export const NO_FRAME = -1;
/** More than any file has. */
const LINES = 2 ** 24;

/** What a box shows. */
export interface Shown {
  readonly kind: string;
  readonly name: string;
  readonly file: string;
  readonly line: number;
}

const MADE = new WeakMap<Profile, Functions[]>();

/** The last rows stand for the phases of a program, which have no frame. */
export class Functions {
  private constructor(
    private readonly profile: Profile,
    readonly byLine: boolean,
    /** Function of each frame. */
    readonly ofFrame: Int32Array,
    /** Function of each node of the profile. */
    readonly ofNode: Int32Array,
    /** First frame of each function, `NO_FRAME` for the phases. */
    readonly example: Int32Array,
    /** Index of each function's layer. */
    readonly layer: Uint8Array,
    /** Whether each function is a Python function outside user code. */
    readonly library: Uint8Array,
  ) {}

  static of(profile: Profile, byLine: boolean): Functions {
    const key = Number(byLine);
    const known = MADE.get(profile) ?? [];
    MADE.set(profile, known);
    known[key] ??= Functions.make(profile, byLine);
    return known[key];
  }

  private static make(profile: Profile, byLine: boolean): Functions {
    const { frames, facts, tree } = profile;
    const count = frames.kind.length;
    const kinds = facts.kinds.length;
    const places = numbering();
    const known = numbering();
    const ofFrame = new Int32Array(count);
    const examples: number[] = [];
    for (let frame = 0; frame < count; frame++) {
      const file = frames.file[frame];
      const place = byLine ? places(file * LINES + frames.line[frame]) : file;
      const what = frames.name[frame] * kinds + frames.kind[frame];
      const func = known(what * Math.max(count, facts.strings.length) + place);
      if (func === examples.length) examples.push(frame);
      ofFrame[frame] = func;
    }
    const extra = facts.phases.length;
    const python = facts.kinds.indexOf("python");
    const scope = facts.layers.indexOf("scope");
    const size = examples.length + extra;
    const example = new Int32Array(size).fill(NO_FRAME);
    const layer = new Uint8Array(size).fill(scope);
    const library = new Uint8Array(size);
    examples.forEach((frame, func) => {
      example[func] = frame;
      layer[func] = facts.layer_of_kind[frames.kind[frame]];
      library[func] = frames.kind[frame] === python && !frames.user[frame] ? 1 : 0;
    });
    const ofNode = new Int32Array(tree.length);
    for (let node = 0; node < ofNode.length; node++) ofNode[node] = ofFrame[tree.frame[node]];
    return new Functions(profile, byLine, ofFrame, ofNode, example, layer, library);
  }

  get length(): number {
    return this.example.length;
  }

  shown(func: number): Shown {
    const { facts, frames } = this.profile;
    const frame = this.example[func];
    if (frame === NO_FRAME) {
      const phase = func - this.length + facts.phases.length;
      return { kind: "phase", name: facts.phases[phase].replaceAll("_", " "), file: "", line: 0 };
    }
    return {
      kind: facts.kinds[frames.kind[frame]],
      name: facts.strings[frames.name[frame]],
      file: facts.strings[frames.file[frame]],
      line: this.byLine ? frames.line[frame] : 0,
    };
  }

  layerName(func: number): string {
    return this.profile.facts.layers[this.layer[func]];
  }

  ofPhase(phase: number): number {
    return this.length - this.profile.facts.phases.length + phase;
  }
}

/** Number keys by first appearance. */
function numbering(): (key: number) => number {
  const known = new Map<number, number>();
  return (key) => {
    const number = known.get(key) ?? known.size;
    known.set(key, number);
    return number;
  };
}
