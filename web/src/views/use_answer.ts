// Ask a question and follow it as it changes; the last answer stays on screen until the next is here.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Answers, Refusal, type What } from "../api";
import type { Query } from "../model/question";
import { spelling } from "../model/question";
import { failure, source } from "../state";

export interface Asked<W extends What> {
  readonly answer: Answers[W] | null;
  readonly error: string;
  readonly waiting: boolean;
  /** Spelling of the question that `answer` answers. */
  readonly of: string;
}

const RELOAD = [409, 410, 0];

export function useAnswer<W extends What>(what: W, query: Query | null): Asked<W> {
  const [state, setState] = useState<Asked<W>>({ answer: null, error: "", waiting: true, of: "" });
  const key = query === null ? "" : spelling(what, query);
  const running = useRef<AbortController | null>(null);
  const current = source.value;
  useEffect(() => {
    running.current?.abort();
    if (query === null || current === null) {
      setState({ answer: null, error: "", waiting: false, of: "" });
      return;
    }
    const control = new AbortController();
    running.current = control;
    setState((before) => ({ ...before, waiting: true }));
    current.ask(what, query).then(
      (answer) => {
        if (!control.signal.aborted) setState({ answer, error: "", waiting: false, of: key });
      },
      (error: unknown) => {
        if (control.signal.aborted) return;
        const message = error instanceof Error ? error.message : String(error);
        if (error instanceof Refusal && RELOAD.includes(error.status)) failure.value = error;
        setState({ answer: null, error: message, waiting: false, of: key });
      },
    );
    return () => control.abort();
  }, [key, what, current]);
  return state;
}
