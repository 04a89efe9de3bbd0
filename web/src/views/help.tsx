// The keys, all of them.

import { useEffect, useRef } from "preact/hooks";
import { helpOpen } from "../state";

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    "Everywhere",
    [
      ["o", "overview"],
      ["p  r", "processes and ranks of a job"],
      ["1 … 9", "the other views"],
      ["/", "search; Enter and Shift Enter for the next and previous match"],
      ["n  N", "next and previous match"],
      ["v", "graph or tree"],
      ["h", "hide or show library frames"],
      ["l", "one box for each line of a function"],
      ["t", "order of the program, or largest first"],
      ["k", "colour by layer, phase or self cost"],
      ["u", "undo"],
      ["i", "details"],
      ["d", "light, dark, or as the system"],
      ["?", "this list"],
    ],
  ],
  [
    "In the graph",
    [
      ["arrows", "parent, largest child, neighbours"],
      ["Enter", "zoom in to the selected box"],
      ["Esc  0", "zoom out"],
      ["+  -", "zoom"],
      ["f", "focus: keep this subtree only"],
      ["s", "sandwich: callers and callees"],
      ["x", "hide: merge into callers"],
      ["c", "collapse: merge callees into it"],
      ["Delete", "drop: leave out its cost"],
      ["Ctrl wheel", "zoom at the mouse"],
      ["right click", "select without zooming in"],
      ["Ctrl C", "copy the call path of the selected box"],
      ["Shift ← →", "scroll a wide table"],
    ],
  ],
  [
    "In the time line",
    [
      ["w  s", "zoom"],
      ["a  d", "move"],
      ["arrows", "span before and after, around and inside"],
    ],
  ],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [helpOpen.value]);
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
      <div class="help-body">
        {KEYS.map(([title, keys]) => (
          <section key={title}>
            <h2>{title}</h2>
            <dl>
              {keys.map(([key, text]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
