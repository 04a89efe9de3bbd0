// The changes made to the tree, in order; each can be taken back.

import type { Edit } from "../model/address";
import { titleOf } from "../model/key_texts";
import { go, place, undoEdit } from "../state";
import { Icon, Link } from "./parts";

const VERBS: Record<Edit["kind"], string> = {
  root: "only",
  focus: "focus on",
  hide: "without",
  collapse: "collapsed",
  drop: "dropped",
  open: "libraries in",
};

export function Breadcrumbs() {
  const { edits } = place.value;
  if (!edits.length) return null;
  return (
    <nav class="crumbs" aria-label="Changes to the tree">
      <Link onClick={() => go({ edits: [], zoom: -1 })}>whole tree</Link>
      {edits.map((edit, index) => (
        <span class="crumb" key={`${edit.kind}${edit.target}${index}`}>
          <span class="muted">{VERBS[edit.kind]}</span> {edit.label || edit.target}
          <Icon label={`Undo: ${VERBS[edit.kind]} ${edit.label}`} onClick={() => undoEdit(index)}>
            ×
          </Icon>
        </span>
      ))}
      <Link title={titleOf("u")} onClick={() => undoEdit()}>
        undo
      </Link>
    </nav>
  );
}
