// Values that components and effects follow: whoever read a value runs again when it changes.
// Does not look at what a computed value becomes: its readers run again when its sources changed.

import { type Component, options } from "preact";

export interface ReadSignal<Value> {
  readonly value: Value;
}

export interface Signal<Value> {
  value: Value;
}

/** Follows the values that it read last. */
class Reader {
  readonly #sources = new Set<Set<Reader>>();

  constructor(readonly onChange: () => void) {}

  follow<Value>(run: () => Value): Value {
    this.leave();
    const before = reader;
    reader = this;
    try {
      return run();
    } finally {
      reader = before;
    }
  }

  join(readers: Set<Reader>): void {
    readers.add(this);
    this.#sources.add(readers);
  }

  leave(): void {
    for (const readers of this.#sources) readers.delete(this);
    this.#sources.clear();
  }
}

let reader: Reader | null = null;
let changes = 0;
const waiting = new Set<() => void>();

export function signal<Value>(first: Value): Signal<Value> {
  const readers = new Set<Reader>();
  let current = first;
  return {
    get value() {
      reader?.join(readers);
      return current;
    },
    set value(next) {
      if (Object.is(next, current)) return;
      current = next;
      tell(readers);
    },
  };
}

/** A value made of others, again only after they changed and when it is read. */
export function computed<Value>(make: () => Value): ReadSignal<Value> {
  const readers = new Set<Reader>();
  let known: { value: Value } | null = null;
  const own = new Reader(() => {
    known = null;
    tell(readers);
  });
  return {
    get value() {
      reader?.join(readers);
      known ??= { value: own.follow(make) };
      return known.value;
    },
  };
}

/** Run now, and again after any change of what it read. */
export function effect(run: () => void): void {
  const again = () => own.follow(run);
  const own = new Reader(() => waiting.add(again));
  again();
}

/** Change several values before any effect runs. */
export function batch(run: () => void): void {
  changes += 1;
  try {
    run();
  } finally {
    changes -= 1;
    // An effect that waits while others run is added at the end.
    if (!changes) {
      for (const again of waiting) {
        waiting.delete(again);
        again();
      }
    }
  }
}

function tell(readers: Set<Reader>): void {
  batch(() => {
    for (const each of [...readers]) each.onChange();
  });
}

// Preact calls these functions while it renders: its names for "render" and "error" are `__r`, `__e`.
interface Rendered {
  readonly __c?: Component;
}
type Hooks = Record<string, ((...given: unknown[]) => void) | undefined>;

const components = new WeakMap<Component, Reader>();

function onStep(name: string, run: (component?: Component) => void): void {
  const hooks = options as unknown as Hooks;
  const before = hooks[name];
  hooks[name] = (...given) => {
    run((given[0] as Rendered)?.__c);
    before?.(...given);
  };
}

function finish(): void {
  reader = null;
}

onStep("__r", (component) => {
  if (!component) return;
  reader = components.get(component) ?? new Reader(() => component.setState({}));
  reader.leave();
  components.set(component, reader);
});
onStep("diffed", finish);
onStep("__e", finish);
onStep("unmount", (component) => component && components.get(component)?.leave());
