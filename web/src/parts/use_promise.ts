// What a promise gives, for views: null until it is known, and again when the question changes.

import { useEffect, useState } from "preact/hooks";

export interface Known<Value> {
  readonly key: string;
  readonly value: Value | null;
  readonly error: string;
}

export function usePromise<Value>(key: string, make: () => Promise<Value>): Known<Value> | null {
  const [known, setKnown] = useState<Known<Value> | null>(null);
  useEffect(() => {
    let isCurrent = true;
    const tell = (value: Value | null, error: string) => {
      if (isCurrent) setKnown({ key, value, error });
    };
    make().then(
      (value) => tell(value, ""),
      (reason: unknown) => tell(null, reason instanceof Error ? reason.message : String(reason)),
    );
    return () => {
      isCurrent = false;
    };
  }, [key]);
  return known?.key === key ? known : null;
}
