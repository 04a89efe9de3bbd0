// The processes of a job: a row each, children below their parent; a click opens a process, or all of
// a role together. Alike processes are one row, with the busiest and a typical one below.

import { useState } from "preact/hooks";
import type { JobAnswer, ProcessGroup, ProcessRow } from "../api_types";
import { START } from "../model/address";
import { palette } from "../model/colors";
import { formatCount, formatTime } from "../model/format";
import { about, dark, go, place } from "../state";
import { Bar, Legend, type Part, Stack } from "../views/bar";
import { Link, ValueCell } from "../views/parts";
import { timeColors } from "./time_colors";

/** Open a profile of the page as a graph. */
export function openFile(file: number): void {
  go({ ...START, view: "flame", metric: place.value.metric, file });
}

export function ProcessesView() {
  return (
    <div class="page scroll processes">
      {about.value?.jobs.map((job) => (
        <Job key={job.name} job={job} />
      ))}
    </div>
  );
}

/** What a job's processes did, by role; each leads to the processes together. */
export function Roles(props: { job: JobAnswer }) {
  const { job } = props;
  const [whole, ...roles] = job.roles;
  const colors = Object.values(palette(dark.value).layers).slice(2);
  return (
    <Bar
      label="processor time by role"
      unit="ns"
      total={whole.cpu_ns || 1}
      parts={roles.map(({ name, file, cpu_ns }, index) => ({
        name,
        value: Math.max(cpu_ns, 1),
        color: colors[index % colors.length],
        show: file < 0 ? undefined : () => openFile(file),
      }))}
    />
  );
}

function Job(props: { job: JobAnswer }) {
  const { job } = props;
  const [open, setOpen] = useState<readonly number[]>([]);
  const [whole] = job.roles;
  const hosts = new Set(job.processes.map((each) => each.host)).size > 1;
  const longest = Math.max(...job.processes.map(observed), 1);
  const rows = [];
  const told = new Set<number>();
  const indents: number[] = []; // of the row and of all above it
  let hidden = -1;
  for (const [index, row] of job.processes.entries()) {
    if (hidden >= 0 && row.depth > hidden) continue;
    hidden = -1;
    indents.length = row.depth;
    const indent = row.depth ? indents[row.depth - 1] + 1 : 0;
    const group = job.groups[row.group];
    const isOpen = open.includes(row.group);
    if (group && !told.has(row.group)) {
      told.add(row.group);
      rows.push(
        <GroupRow
          key={`group ${row.group}`}
          group={group}
          total={whole.cpu_ns}
          indent={indent}
          hosts={hosts}
          isOpen={isOpen}
          onToggle={() =>
            setOpen(isOpen ? open.filter((each) => each !== row.group) : [...open, row.group])
          }
        />,
      );
    }
    const isBusiest = group?.busiest === index;
    if (group && !isOpen && !isBusiest && group.typical !== index) {
      hidden = row.depth;
      continue;
    }
    indents.push(indent + (group ? 1 : 0));
    rows.push(
      <Row
        key={index}
        row={row}
        mark={!group ? "" : isBusiest ? "busiest" : group.typical === index ? "typical" : ""}
        indent={indents[row.depth]}
        hosts={hosts}
        total={whole.cpu_ns}
        longest={longest}
      />,
    );
  }
  return (
    <section>
      <h2>{job.name}</h2>
      <p>
        <Opener file={whole.file} name={whole.name} />
        <span class="muted">, by processor time:</span>
      </p>
      <Roles job={job} />
      {job.notes.map((note) => (
        <p class="notice" key={note}>
          {note}
        </p>
      ))}
      <Legend title="time:" parts={partsOf(job.processes[0])} />
      <table class="pairs-table">
        <thead>
          <tr>
            <th scope="col">process</th>
            {hosts && <th scope="col">host</th>}
            <th scope="col" class="number">
              elapsed
            </th>
            <th scope="col">processor time</th>
            <th scope="col">time</th>
            <th scope="col">ended, not recorded</th>
            <th scope="col">program</th>
          </tr>
        </thead>
        <tbody>{rows}</tbody>
      </table>
    </section>
  );
}

function Row(props: {
  row: ProcessRow;
  mark: string;
  indent: number;
  hosts: boolean;
  total: number;
  longest: number;
}) {
  const { row, mark } = props;
  const isShown = row.file >= 0 && row.file === place.value.file;
  return (
    <tr aria-current={isShown ? "true" : undefined}>
      <th scope="row" style={{ paddingLeft: `${18 * props.indent}px` }}>
        <Opener file={row.file} name={row.name} /> {row.pid}{" "}
        {mark && <span class="badge">{mark}</span>}
      </th>
      {props.hosts && <td>{row.host}</td>}
      <td class="number">{formatTime(row.wall_ns)}</td>
      <td>
        <ValueCell value={row.cpu_ns} total={props.total} unit="ns" />
      </td>
      <td>
        <Stack parts={partsOf(row)} whole={props.longest} />
      </td>
      <td>
        {row.ended}
        {row.uncovered_ns > 0 && (
          <span class="muted"> (up to {formatTime(row.uncovered_ns)} not covered)</span>
        )}
        <Lacking row={row} />
      </td>
      <td class="muted">
        <div class="clip" title={row.program}>
          {row.program}
        </div>
      </td>
    </tr>
  );
}

function GroupRow(props: {
  group: ProcessGroup;
  total: number;
  indent: number;
  hosts: boolean;
  isOpen: boolean;
  onToggle: () => void;
}) {
  const { group, isOpen } = props;
  return (
    <tr>
      <th scope="row" style={{ paddingLeft: `${18 * props.indent}px` }}>
        <button type="button" class="link plain" aria-expanded={isOpen} onClick={props.onToggle}>
          {isOpen ? "▾" : "▸"} {group.name}
        </button>
      </th>
      {props.hosts && <td />}
      <td />
      <td>
        <ValueCell value={group.cpu_ns} total={props.total} unit="ns" />
      </td>
      <td>
        <Histogram group={group} />
      </td>
      <td>{group.ended}</td>
      <td />
    </tr>
  );
}

/** Where a process was. */
function partsOf(row: ProcessRow): Part[] {
  const { operator, running, waiting } = timeColors();
  return [
    { name: "in operators", value: row.operator_ns, color: operator },
    { name: "running between operators", value: row.running_ns, color: running },
    { name: "waiting", value: row.waiting_ns, color: waiting },
  ];
}

function observed(row: ProcessRow): number {
  return row.operator_ns + row.running_ns + row.waiting_ns;
}

function Opener(props: { file: number; name: string }) {
  const { file, name } = props;
  if (file < 0) return <span title="not in this page">{name}</span>;
  return (
    <Link title="Open its flame graph" onClick={() => openFile(file)}>
      {name}
    </Link>
  );
}

/** How many of many processes have how much processor time. */
function Histogram(props: { group: ProcessGroup }) {
  const { bins } = props.group;
  if (!bins.length) return null;
  const text = `processes by processor time, least to most: ${bins.join(", ")}`;
  const most = Math.max(...bins);
  return (
    <span class="bins" role="img" title={text} aria-label={text}>
      {bins.map((bin, index) => (
        <span key={index} style={{ height: `${(100 * bin) / most}%` }} />
      ))}
    </span>
  );
}

/** What a process did not record, and why; its Trust view has all. */
function Lacking(props: { row: ProcessRow }) {
  const { warnings, file } = props.row;
  if (!warnings.length) return null;
  const [first] = warnings;
  return (
    <div>
      <button
        type="button"
        class="link plain clip"
        title={warnings.join("\n")}
        disabled={file < 0}
        onClick={() => go({ ...START, view: "trust", file })}
      >
        {first}
        {warnings.length > 1 && ` (and ${formatCount(warnings.length - 1)} more)`}
      </button>
    </div>
  );
}
