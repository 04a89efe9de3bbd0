// The keys, all of them.

import { useEffect, useRef } from "preact/hooks";
import { KEY_TEXTS } from "../model/key_texts";
import { helpOpen } from "../state";
import { tabs } from "./tabs";

const MOVES: readonly (readonly [string, string])[] = [
  ["arrows", "Parent, child, neighbours"],
  ["Enter", "Zoom in to the box"],
  ["+  -", "Zoom; Ctrl wheel at the mouse"],
  ["right click", "Select without zooming in"],
  ["Ctrl C", "Copy the call path"],
  ["Shift ← →", "Scroll a wide table"],
  ["w s a d", "Zoom and move in the time line"],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [helpOpen.value]);
  const views = tabs().map(({ key, label }) => [key, label] as const);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-label="Keys"
      onClose={() => {
        helpOpen.value = false;
      }}
      onClick={(event) => {
        if (event.target === dialog.current) helpOpen.value = false;
      }}
    >
      <dl>
        {[...views.filter(([key]) => key), ...Object.entries(KEY_TEXTS), ...MOVES].map(
          ([key, text]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{text}</dd>
            </div>
          ),
        )}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
