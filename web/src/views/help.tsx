// The keys, all of them.

import { KEY_TEXTS } from "../model/key_texts";
import { helpOpen } from "../state";
import { Dialog } from "./parts";
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
  const views = tabs().map(({ key, label }) => [key, label] as const);
  return (
    <Dialog open={helpOpen} label="Keys" class="help">
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
    </Dialog>
  );
}
