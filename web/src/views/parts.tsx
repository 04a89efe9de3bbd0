// Small pieces that several views use.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { palette } from "../model/colors";
import { formatShare, formatValue } from "../model/format";
import { isolated } from "../model/labels";
import type { Signal } from "../signals";
import { dark, go, profile } from "../state";

/** Return a file relative to the folder the run began in; of a library, what follows
 * site-packages or, in the standard library, lib. */
export function shorten(file: string): string {
  return isolated(shortened(file));
}

function shortened(file: string): string {
  const folder = `${profile.value?.cwd.replace(/\/$/, "") ?? ""}/`;
  if (folder.length > 1 && file.startsWith(folder)) return file.slice(folder.length);
  const library = /\/(?:site|dist)-packages\/(.*)$/.exec(file);
  const standard = /\/lib\/(python3[\d.]*\/.*)$/.exec(file);
  return library?.[1] ?? standard?.[1] ?? file;
}

export function Dot(props: { layer: string }) {
  const color = palette(dark.value).layers[props.layer] ?? palette(dark.value).layers.root;
  return <span class="dot" style={{ background: color }} aria-hidden="true" />;
}

/** A value with its share of the whole, and a bar as wide as the share. */
export function ValueCell(props: { value: number; total: number; unit: string }) {
  const share = props.total > 0 ? Math.min(Math.max(props.value / props.total, 0), 1) : 0;
  return (
    <div class="value">
      <span class="value-track" aria-hidden="true">
        <span style={{ width: `${100 * share}%` }} />
      </span>
      <span class="value-text">{formatValue(props.value, props.unit)}</span>
      <span class="value-share">{formatShare(props.value, props.total)}</span>
    </div>
  );
}

/** Buttons of which one is chosen, for what is below them. */
export function Subtabs<Name extends string>(props: {
  label: string;
  names: readonly Name[];
  chosen: string;
  text: (name: Name) => string;
  onChoose: (name: Name) => void;
}) {
  return (
    <div role="tablist" aria-label={props.label}>
      {props.names.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          aria-selected={name === props.chosen}
          onClick={() => props.onChoose(name)}
        >
          {props.text(name)}
        </button>
      ))}
    </div>
  );
}

/** A button that looks like a link, or like plain text until the mouse is over it. */
export function Link(props: {
  plain?: boolean;
  title?: string | undefined;
  "aria-pressed"?: boolean | undefined;
  onClick?: (() => void) | undefined;
  children: ComponentChildren;
}) {
  const { plain, ...rest } = props;
  return <button type="button" class={plain ? "link plain" : "link"} {...rest} />;
}

/** A link to a line of source, or to a file where the line is 0. */
export function SourceLink(props: {
  file: string;
  line: number;
  title?: string | undefined;
  children?: ComponentChildren;
}) {
  const { file, line } = props;
  return (
    <Link title={props.title} onClick={() => go({ view: "source", path: file, line })}>
      {props.children ?? shorten(file) + (line ? `:${line}` : "")}
    </Link>
  );
}

/** A button of one character, whose label a screen reader reads. */
export function Icon({ label, ...rest }: { label: string } & JSX.IntrinsicElements["button"]) {
  return <button type="button" class="icon" aria-label={label} {...rest} />;
}

/** A window above the page, while a signal says so. */
export function Dialog(props: {
  open: Signal<boolean>;
  label: string;
  class: string;
  children: ComponentChildren;
}) {
  const { open } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  // The event comes later, when it may be open again.
  const isOwn = useRef(false);
  useEffect(() => {
    if (open.value) dialog.current?.showModal();
    else if (dialog.current?.open) {
      isOwn.current = true;
      dialog.current.close();
    }
  }, [open.value]);
  return (
    <dialog
      ref={dialog}
      class={props.class}
      aria-label={props.label}
      onClose={() => {
        if (!isOwn.current) open.value = false;
        isOwn.current = false;
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        open.value = false;
      }}
      onClick={(event) => {
        if (event.target === dialog.current) open.value = false;
      }}
    >
      {props.children}
    </dialog>
  );
}

/** Names with values. */
export function Pairs(props: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <table class="pairs-table">
      <tbody>
        {props.rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Check(props: {
  text: string;
  title?: string;
  checked: boolean;
  onCheck: (checked: boolean) => void;
}) {
  return (
    <label class="check" title={props.title}>
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onCheck(event.currentTarget.checked)}
      />
      {props.text}
    </label>
  );
}

/** A list to choose from, with its label: texts by value, or groups of them as children. */
export function Select(props: {
  label: string;
  value: string | number;
  options?: readonly (readonly [string | number, string])[];
  title?: string | undefined;
  disabled?: boolean;
  onChoose: (value: string) => void;
  children?: ComponentChildren;
}) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select
        value={props.value}
        title={props.title}
        disabled={props.disabled}
        onChange={(event) => props.onChoose(event.currentTarget.value)}
      >
        {props.options?.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        {props.children}
      </select>
    </label>
  );
}

export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children && <div>{props.children}</div>}
    </div>
  );
}

export function Waiting() {
  return (
    <div class="empty" role="status">
      <p class="muted">…</p>
    </div>
  );
}

/** Return the words of a phase or layer as a person reads them. */
export function words(label: string): string {
  return label.replaceAll("_", " ");
}
