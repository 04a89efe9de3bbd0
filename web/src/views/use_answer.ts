// Ask a question and follow it as it changes; the last answer stays on screen until the next is here.

import { useEffect, useState } from "preact/hooks";
import { type Answers, Refusal, type What } from "../api";
import type { Query } from "../model/question";
import { spelling } from "../model/question";
import { CHANGED, failure, source } from "../state";

export interface Asked<W extends What> {
  readonly answer: Answers[W] | null;
  readonly error: string;
  /** Spelling of the question that `answer` answers. */
  readonly of: string;
}

const RELOAD = [CHANGED, 410, 0];

export function useAnswer<W extends What>(what: W, query: Query | null): Asked<W> {
  const [state, setState] = useState<Asked<W>>({ answer: null, error: "", of: "" });
  const key = query === null ? "" : spelling(what, query);
  const current = source.value;
  useEffect(() => {
    if (query === null || current === null) {
      setState({ answer: null, error: "", of: "" });
      return;
    }
    const control = new AbortController();
    current.ask(what, query, control.signal).then(
      (answer) => setState({ answer, error: "", of: key }),
      (error: Error) => {
        if (error instanceof Refusal && RELOAD.includes(error.status)) failure.value = error;
        setState({ answer: null, error: error.message, of: key });
      },
    );
    return () => control.abort();
  }, [key, what, current]);
  return state;
}
