// Payloads that collectors added to the file (memory, recompilations, ...), shown from their JSON.
// Knows no section: units and source locations are derived from the names of the fields.

import type { ComponentChildren } from "preact";
import { formatCount, formatValue, grouped } from "../model/format";
import { go, place, profile, showNode, tree } from "../state";
import { Empty, Link, Pairs, SourceLink, Subtabs, shorten, Waiting, words } from "./parts";
import { PlainTable } from "./plain_table";
import { useAnswer } from "./use_answer";

const MOST_ROWS = 500;
const LONG_TEXT = 160;
/** Ending of a field's name: unit of its values, and what they are multiplied by for it. */
const UNITS = { _ns: ["ns", 1], _s: ["ns", 1e9], _bytes: ["bytes", 1] } as const;

/** Sections without another view. */
export function otherSections(): string[] {
  return (profile.value?.sections ?? []).filter((name) => name !== "findings");
}

export function SectionsView() {
  const known = otherSections();
  const { section } = place.value;
  const chosen = known.includes(section) ? section : known[0];
  const asked = useAnswer("section", chosen ? { file: tree.value.file, name: chosen } : null);
  if (!chosen) {
    return (
      <Empty title="This profile has no further data">
        Collectors that keep more than a tree of costs, such as compilations or memory, show it
        here.
      </Empty>
    );
  }
  return (
    <div class="page column">
      <div class="subtabs">
        <Subtabs
          label="Section"
          names={known}
          chosen={chosen}
          text={words}
          onChoose={(section) => go({ section })}
        />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={words(chosen)}>
        {asked.error ? (
          <Empty title="It cannot be shown">{asked.error}</Empty>
        ) : asked.answer ? (
          <div class="section-body">
            <Value name="" value={asked.answer.content} depth={0} />
          </div>
        ) : (
          <Waiting />
        )}
      </div>
    </div>
  );
}

type Fields = Record<string, unknown>;

/** Show a value: an object as names with values, a list of objects as a table. */
function Value(props: { name: string; value: unknown; depth: number }) {
  const { name, value, depth } = props;
  if (Array.isArray(value)) {
    if (value.length && value.every(isFields)) return <Records rows={value} depth={depth} />;
    return <Text>{value.map((each) => plain(name, each)).join(", ") || "none"}</Text>;
  }
  if (!isFields(value)) return <Scalar name={name} value={value} />;
  const entries = Object.entries(value);
  const single = entries.filter(([, each]) => !isLarge(each));
  const large = entries.filter(([, each]) => isLarge(each));
  return (
    <>
      {single.length > 0 && (
        <Pairs
          rows={single.map(([key, each]) => [
            fieldLabel(key),
            <Value name={key} value={each} depth={depth + 1} />,
          ])}
        />
      )}
      {large.map(([key, each]) => (
        <Part key={key} name={key} value={each} depth={depth} />
      ))}
    </>
  );
}

/** A value that needs more than a line: with a heading at the top level, folded below it. */
function Part(props: { name: string; value: unknown; depth: number }) {
  const { name, value, depth } = props;
  const size = Array.isArray(value) ? value.length : Object.keys(value as Fields).length;
  if (depth === 0) {
    return (
      <section>
        <h2>
          {fieldLabel(name)} <span class="muted">{formatCount(size)}</span>
        </h2>
        <Value name={name} value={value} depth={depth + 1} />
      </section>
    );
  }
  return (
    <details>
      <summary>
        {fieldLabel(name)} <span class="muted">{formatCount(size)}</span>
      </summary>
      <Value name={name} value={value} depth={depth + 1} />
    </details>
  );
}

function Records(props: { rows: readonly Fields[]; depth: number }) {
  const names = [...new Set(props.rows.flatMap((row) => Object.keys(row)))];
  // The line number is shown with its file.
  const columns = names.filter((name) => name !== "line" || !names.includes("file"));
  const isNumeric = (name: string) => props.rows.every((row) => isNumberOrNothing(row[name]));
  return (
    <>
      <PlainTable
        label="rows"
        rows={props.rows.slice(0, MOST_ROWS)}
        columns={columns.map((name) => [
          fieldLabel(name),
          (row: Fields) => <Cell name={name} row={row} depth={props.depth} />,
          isNumeric(name) ? "number" : undefined,
        ])}
      />
      {props.rows.length > MOST_ROWS && (
        <p class="muted note">
          {formatCount(MOST_ROWS)} of {formatCount(props.rows.length)} rows
        </p>
      )}
    </>
  );
}

function Cell(props: { name: string; row: Fields; depth: number }) {
  const { name, row, depth } = props;
  const value = row[name];
  if (name === "file" && typeof value === "string" && value) {
    return <FilePlace file={value} line={Number(row.line) || 0} />;
  }
  if (isLarge(value)) return <Part name="" value={value} depth={depth + 1} />;
  return <Value name={name} value={value} depth={depth + 1} />;
}

function Scalar(props: { name: string; value: unknown }) {
  const { name, value } = props;
  if (name === "node" && typeof value === "number") {
    return (
      <Link title="Show in the graph" onClick={() => showNode(value)}>
        {formatCount(value)}
      </Link>
    );
  }
  return <Text>{plain(name, value)}</Text>;
}

/** A place in a source file; a link where the source view knows the file. */
function FilePlace(props: { file: string; line: number }) {
  const { file, line } = props;
  const { file: opened, metric } = tree.value;
  const files = useAnswer("files", { file: opened, metric });
  const text = `${shorten(file)}${line > 0 ? `:${line}` : ""}`;
  const isKnown = files.answer?.files.some((each) => each.file === file) ?? false;
  if (!isKnown) return <span title={file}>{text}</span>;
  return <SourceLink file={file} line={line} title={file} />;
}

/** Text of any length: the rest of a long one unfolds. */
function Text(props: { children: ComponentChildren }) {
  const text = String(props.children ?? "");
  if (text.length <= LONG_TEXT) return <span>{text}</span>;
  return (
    <details class="long-text">
      <summary>{text.slice(0, LONG_TEXT)}…</summary>
      {text}
    </details>
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isLarge(value: unknown): boolean {
  if (Array.isArray(value)) return value.some((each) => typeof each === "object" && each !== null);
  return isFields(value) && Object.keys(value).length > 0;
}

function isNumberOrNothing(value: unknown): boolean {
  return typeof value === "number" || value === null || value === undefined;
}

function unitOf(name: string): readonly [string, number] | null {
  const ending = Object.keys(UNITS).find((each) => name.endsWith(each));
  return ending ? UNITS[ending as keyof typeof UNITS] : null;
}

/** Return the field's name as words, without the unit that its values carry. */
function fieldLabel(name: string): string {
  return words(name.replace(/_(?:ns|s|bytes)$/, ""));
}

function plain(name: string, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") {
    const unit = unitOf(name);
    if (unit) return formatValue(value * unit[1], unit[0]);
    return Number.isInteger(value) ? grouped(value) : String(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
