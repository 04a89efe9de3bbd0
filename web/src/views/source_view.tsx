// Source text with the cost of each line beside it.

import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { FileRow, FilesAnswer, LineCost, SourceAnswer } from "../engine/answers";
import { named } from "../model/address";
import { formatCount, formatShare, formatValue } from "../model/format";
import { go, measure, place, profile, tree } from "../state";
import { Stack } from "./bar";
import { Empty, shorten, Waiting } from "./parts";
import { useMatches } from "./search_box";
import { useAnswer } from "./use_answer";

export function SourceView() {
  const query = { file: tree.value.file, metric: tree.value.metric };
  const files = useAnswer("files", query);
  if (files.error) return <Empty title="No source">{files.error}</Empty>;
  if (!files.answer) return <Waiting />;
  const path = place.value.path || files.answer.files[0]?.file || "";
  return (
    <div class="split source">
      <FileList answer={files.answer} path={path} />
      <div class="split-main">
        {path ? (
          <SourceFile file={tree.value.file} path={path} />
        ) : (
          <Empty title="This profile names no source file" />
        )}
      </div>
    </div>
  );
}

function FileList(props: { answer: FilesAnswer; path: string }) {
  const { answer } = props;
  const groups = [
    ["Your code", answer.files.filter((each) => !each.library)],
    ["Libraries", answer.files.filter((each) => each.library)],
  ] as const;
  return (
    <nav class="files" aria-label="Source files">
      {groups.map(
        ([title, files]) =>
          files.length > 0 && (
            <section key={title}>
              <h2>{title}</h2>
              {files
                .filter((each) => isListed(each))
                .map((each) => (
                  <File key={each.file} {...props} file={each} />
                ))}
              <Costless {...props} files={files.filter((each) => !isListed(each))} />
            </section>
          ),
      )}
    </nav>
  );
}

function isListed(file: FileRow): boolean {
  return !file.library || file.exclusive > 0;
}

/** Library files without cost under this measure, folded. */
function Costless(props: { answer: FilesAnswer; path: string; files: readonly FileRow[] }) {
  if (!props.files.length) return null;
  return (
    <details class="costless" open={props.files.some((each) => each.file === props.path)}>
      <summary class="muted">{formatCount(props.files.length)} more without cost</summary>
      {props.files.map((each) => (
        <File key={each.file} answer={props.answer} path={props.path} file={each} />
      ))}
    </details>
  );
}

function File(props: { answer: FilesAnswer; path: string; file: FileRow }) {
  const { file, answer } = props;
  return (
    <button
      type="button"
      class="file"
      aria-current={file.file === props.path ? "true" : undefined}
      title={file.file}
      onClick={() => go({ path: file.file, line: 0 })}
    >
      <FileName file={shorten(file.file)} />
      <span class="muted">{formatShare(file.exclusive, answer.total)}</span>
    </button>
  );
}

/** The name of the file comes first, because users look for it and it must not be cut off. */
function FileName(props: { file: string }) {
  const at = props.file.lastIndexOf("/");
  return (
    <span class="clip">
      {props.file.slice(at + 1)}
      {at > 0 && <span class="file-folder"> {props.file.slice(0, at)}</span>}
    </span>
  );
}

/** The text of a file that a profile names; `of` names the profile where several are shown. */
export function SourceFile(props: { file: string; path: string; of?: string }) {
  const { of, ...which } = props;
  const asked = useAnswer("source", { ...which, metric: tree.value.metric });
  const bars = [
    useLineBars("elapsed_time_ns", which),
    useLineBars("gpu_time_ns", which),
    useLineBars("gpu_peak_bytes", which),
    useLineBars("peak_bytes", which),
  ].filter((each) => each !== null);
  if (asked.error) return <Empty title="No source">{asked.error}</Empty>;
  if (!asked.answer) return <Waiting />;
  return <SourceText answer={asked.answer} bars={bars} of={of ?? ""} />;
}

/** What the lines cost under another measure than the one that is shown. */
interface LineBars {
  readonly label: string;
  readonly answer: SourceAnswer;
  readonly values: ReadonlyMap<number, number>;
}

function useLineBars(key: string, of: { file: string; path: string }): LineBars | null {
  const known = profile.value?.measures.find((each) => each.key === key);
  const isOther = known && known !== measure.value;
  const { answer } = useAnswer("source", isOther ? { ...of, metric: named(key) } : null);
  const costs = answer?.costs.filter(({ inclusive }) => inclusive > 0) ?? [];
  if (!known || !answer || !costs.length) return null;
  const values = new Map(costs.map(({ line, inclusive }) => [line, inclusive]));
  return { label: known.label, answer, values };
}

function SourceText(props: { answer: SourceAnswer; bars: readonly LineBars[]; of: string }) {
  const { answer, bars } = props;
  const box = useRef<HTMLDivElement>(null);
  const costs = new Map(answer.costs.map((cost) => [cost.line, cost]));
  const most = Math.max(...answer.costs.map((cost) => cost.inclusive), 1);
  const hottest = answer.costs.reduce<LineCost | null>(
    (best, cost) => (best === null || cost.exclusive > best.exclusive ? cost : best),
    null,
  );
  const wanted = place.value.line || hottest?.line || 0;
  const texts = useMemo(() => textsOf(answer), [answer]);
  const found = new Set(linesWith(answer, place.value.text));
  useMatches(() => {
    const lines = [...found].sort(
      (a, b) => (costs.get(b)?.inclusive ?? 0) - (costs.get(a)?.inclusive ?? 0) || a - b,
    );
    const value = lines.reduce((sum, line) => sum + (costs.get(line)?.exclusive ?? 0), 0);
    const { total, unit } = answer;
    const visit = (at: number) => go({ line: lines[at] }, "merged");
    return { count: lines.length, value, total, unit, known: lines.length, visit };
  }, [answer]);
  const numbers = [...texts.keys()].sort((a, b) => a - b);
  useEffect(() => {
    const row = box.current?.querySelector(`[data-line="${wanted}"]`);
    row?.scrollIntoView({ block: "center" });
  }, [answer.file, wanted]);
  return (
    <div
      class="source-box"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={`Source of ${answer.shown} ${props.of}`.trim()}
    >
      <div class="source-head">
        <b>{answer.shown}</b>
        {answer.note && <span class="warning-text">{answer.note}</span>}
      </div>
      <table class="code">
        <thead>
          <tr>
            <th scope="col">total</th>
            <th scope="col">self</th>
            {bars.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
            <th scope="col">line</th>
            <th scope="col" class="code-head">
              source
            </th>
          </tr>
        </thead>
        <tbody>
          {numbers.map((number, at) => (
            <Fragment key={number}>
              {number > (numbers[at - 1] ?? 0) + 1 && <Gap columns={4 + bars.length} />}
              <Line
                number={number}
                text={texts.get(number)}
                cost={costs.get(number)}
                answer={answer}
                bars={bars}
                most={most}
                wanted={wanted}
                isFound={found.has(number)}
              />
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What to show for each line: its text, or the function of a line that costs and whose text is missing. */
function textsOf({ costs, parts }: SourceAnswer): Map<number, ComponentChildren> {
  const texts = new Map<number, ComponentChildren>(
    costs.map((cost) => [cost.line, <span class="muted">in {cost.function}</span>]),
  );
  for (const { first, lines } of parts) {
    lines.forEach((text, at) => {
      texts.set(first + at, text);
    });
  }
  return texts;
}

/** The lines whose text contains what is searched for. */
function linesWith({ parts }: SourceAnswer, text: string): number[] {
  const wanted = text.toLowerCase();
  if (!wanted) return [];
  return parts.flatMap(({ first, lines }) =>
    lines.flatMap((line, at) => (line.toLowerCase().includes(wanted) ? first + at : [])),
  );
}

function Gap(props: { columns: number }) {
  return (
    <tr class="gap">
      <td colSpan={props.columns}>⋯</td>
    </tr>
  );
}

function Line(props: {
  number: number;
  text: ComponentChildren;
  cost: LineCost | undefined;
  answer: SourceAnswer;
  bars: readonly LineBars[];
  most: number;
  wanted: number;
  isFound: boolean;
}) {
  const { cost, answer } = props;
  const part = cost ? cost.inclusive / props.most : 0;
  const text = (value: number) => (value > 0 ? formatValue(value, answer.unit) : "");
  return (
    <tr
      data-line={props.number}
      class={`${props.number === props.wanted ? "wanted" : ""}${part > 0 ? " costly" : ""}${props.isFound ? " found" : ""}`}
      style={{ "--share": `${Math.round(100 * Math.sqrt(part))}%` }}
    >
      <td class="number" title={cost ? formatShare(cost.inclusive, answer.total) : ""}>
        {cost ? text(cost.inclusive) : ""}
      </td>
      <td class="number" title={cost ? formatShare(cost.exclusive, answer.total) : ""}>
        {cost ? text(cost.exclusive) : ""}
      </td>
      {props.bars.map(({ label, values, answer: { total, unit } }) => {
        const value = values.get(props.number);
        return (
          <td key={label}>
            {value && (
              <Stack
                parts={[{ name: label, value, color: "var(--heat)" }]}
                whole={total}
                unit={unit}
              />
            )}
          </td>
        );
      })}
      <td class="number line-number">{props.number}</td>
      <td class="code-text">{props.text || " "}</td>
    </tr>
  );
}
