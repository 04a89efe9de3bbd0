// The first view: what the run was, where its time went, what to change, what it held; each leads on.

import type { PoolAnswer } from "../api_types";
import type { TableRow } from "../engine/answers";
import { palette } from "../model/colors";
import { formatCount, formatShare, formatTime, formatValue } from "../model/format";
import { about, dark, go, measure, profile, tree } from "../state";
import { Bar } from "./bar";
import { laterViews } from "./later_views";
import { Empty, Link, ValueCell, words } from "./parts";
import { useAnswer } from "./use_answer";

const MOST_LINES = 5;
const MOST_FINDINGS = 3;

export function OverviewView() {
  const current = profile.value;
  if (!current) return null;
  return (
    <div class="page scroll overview">
      <Headline />
      <Jobs />
      {measure.value ? (
        <>
          <Phases />
          <Lines />
        </>
      ) : (
        <Empty title="No times were recorded">The Trust view says why.</Empty>
      )}
      <Findings />
      <Memory pools={current.memory} />
      <Trust />
    </div>
  );
}

function Headline() {
  const current = profile.value;
  if (!current) return null;
  const { steps } = current;
  const spread = steps?.deviation == null ? "" : ` ± ${formatShare(steps.deviation, steps.mean)}`;
  const parts = [
    current.wall_ns > 0 ? formatTime(current.wall_ns) : "",
    steps ? `${formatCount(steps.count)} steps of ${formatTime(steps.mean)}${spread}` : "",
    current.exit_reason && current.exit_reason !== "exit" ? `ended by ${current.exit_reason}` : "",
  ];
  return (
    <section>
      <h2>{current.script || current.name}</h2>
      <p class="big">{parts.filter(Boolean).join(" · ")}</p>
    </section>
  );
}

function Jobs() {
  const { Roles } = laterViews.value;
  return about.value?.jobs.map((job) => (
    <section key={job.name}>
      <h3>Processes, by processor time</h3>
      {Roles && <Roles job={job} />}
      <Link onClick={() => go({ view: "processes" })}>
        {formatCount(job.processes.length)} processes of {job.name}
      </Link>
    </section>
  ));
}

function Phases() {
  const { file, metric } = tree.value;
  const asked = useAnswer("node", { file: file ?? "", metric: metric ?? "", source: "0" });
  const phases = asked.answer?.phases ?? [];
  const total = phases.reduce((sum, each) => sum + each.value, 0);
  if (!total || !measure.value) return null;
  const colors = palette(dark.value).phases;
  return (
    <section>
      <h3>Phases, by {measure.value.label}</h3>
      <Bar
        label="phases"
        total={total}
        unit={measure.value.unit}
        parts={phases.map(({ phase, value }) => ({
          name: words(phase),
          value,
          color: colors[phase] ?? colors.other,
          show: () => go({ view: "flame", phase }),
        }))}
      />
    </section>
  );
}

function Lines() {
  const { file, metric } = tree.value;
  const has = profile.value?.tables.includes("line") ?? false;
  const query = { file: file ?? "", metric: metric ?? "", by: "line" };
  const asked = useAnswer("table", has ? query : null);
  if (!asked.answer) return null;
  const { total, unit } = asked.answer;
  const rows = [...asked.answer.rows]
    .sort((a, b) => b.exclusive - a.exclusive)
    .slice(0, MOST_LINES)
    .filter((row) => row.exclusive > 0);
  if (!rows.length) return null;
  return (
    <section>
      <h3>Costliest lines of your code</h3>
      <table class="numbers overview-lines">
        <tbody>
          {rows.map((row) => (
            <Line key={`${row.file}:${row.line}`} row={row} total={total} unit={unit} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Line(props: { row: TableRow; total: number; unit: string }) {
  const { row } = props;
  const { file, metric } = tree.value;
  const asked = useAnswer("source", { file: file ?? "", metric: metric ?? "", path: row.file });
  const part = asked.answer?.parts.find(
    (each) => each.first <= row.line && row.line < each.first + each.lines.length,
  );
  return (
    <tr>
      <td>
        <ValueCell value={row.exclusive} total={props.total} unit={props.unit} />
      </td>
      <th scope="row">
        <Link onClick={() => go({ view: "source", path: row.file, line: row.line })}>
          {asked.answer?.shown ?? row.file}:{row.line}
        </Link>
      </th>
      <td class="overview-code">
        <code>{part ? part.lines[row.line - part.first].trim() : row.name}</code>
      </td>
    </tr>
  );
}

function Findings() {
  const asked = useAnswer("findings", { file: tree.value.file ?? "" });
  const findings = asked.answer?.findings ?? [];
  if (!findings.length) return null;
  const more = findings.length - MOST_FINDINGS;
  return (
    <section>
      <h3>What to change</h3>
      <ul class="overview-findings">
        {findings.slice(0, MOST_FINDINGS).map((finding, index) => (
          <li key={`${finding.id}/${index}`}>
            <span class={`badge ${finding.severity}`}>{finding.severity}</span>{" "}
            <Link onClick={() => go({ view: "findings" })}>{finding.title}</Link>
            {finding.gain && <span class="muted"> up to {finding.gain}</span>}
          </li>
        ))}
        {more > 0 && <li class="muted">and {formatCount(more)} more</li>}
      </ul>
    </section>
  );
}

/** What is held at the peak, by purpose; a scale for all memories would hide the small ones. */
function Memory(props: { pools: readonly PoolAnswer[] }) {
  if (!props.pools.length) return null;
  const colors = roleColors();
  return (
    <section>
      <h3>Memory at the peak</h3>
      {props.pools.map((pool) => (
        <div key={pool.name} class="overview-pool">
          <p>
            <strong>{pool.name}</strong> {formatValue(pool.peak_bytes, "bytes")}
            <span class="muted">
              {" "}
              · {formatValue(pool.live_bytes, "bytes")} held at the end
              {pool.growth_steps > 0 &&
                ` · ${pool.growth_bytes > 0 ? "grew by" : "did not grow:"} ${formatValue(pool.growth_bytes, "bytes")} over ${formatCount(pool.growth_steps)} steps`}
            </span>
          </p>
          <Bar
            label={`memory of ${pool.name}`}
            total={pool.peak_bytes}
            unit="bytes"
            parts={Object.entries(pool.peak_roles).map(([role, value]) => ({
              name: role === "optimizer" ? "optimizer state" : role,
              value,
              color: colors[role] ?? colors.unknown,
            }))}
          />
        </div>
      ))}
    </section>
  );
}

function roleColors(): Record<string, string> {
  const { layers } = palette(dark.value);
  return {
    parameter: layers.python,
    gradient: layers.gpu,
    optimizer: layers.module,
    activation: layers.operator,
    input: layers.compiled,
    temporary: layers.scope,
    unknown: layers.root,
  };
}

function Trust() {
  const current = profile.value;
  if (!current) return null;
  const poor = current.collectors.filter((each) => each.status === "degraded").length;
  const [first, ...others] = current.warnings;
  const rest = others.length ? ` (and ${formatCount(others.length)} more)` : "";
  const text = first
    ? `${first}${rest}`
    : poor
      ? `${formatCount(poor)} collectors ran with limits`
      : "no warning";
  return (
    <section>
      <p>
        <Link onClick={() => go({ view: "trust" })}>How far to trust these figures</Link>
        <span class="muted">: {text}</span>
      </p>
    </section>
  );
}
