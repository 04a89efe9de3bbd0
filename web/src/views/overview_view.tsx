// The first view: what the run was, where its time went, what to change, what it held; each leads on.

import type { PartAnswer, PlaceAnswer, PoolAnswer } from "../api_types";
import { palette } from "../model/colors";
import { formatCount, formatMean, formatTime, formatValue } from "../model/format";
import { about, dark, go, measure, profile, tree } from "../state";
import { Bar } from "./bar";
import { laterViews } from "./later_views";
import { Empty, Link, SourceLink, ValueCell } from "./parts";
import { useAnswer } from "./use_answer";

const MOST_FINDINGS = 3;
const MOST_FUNCTIONS = 12;

export function OverviewView() {
  const current = profile.value;
  if (!current) return null;
  return (
    <div class="page scroll overview">
      <Headline />
      <Jobs />
      <Account />
      <Findings />
      <Memory pools={current.memory} />
      <Trust />
    </div>
  );
}

/** Where no elapsed time is known: the functions that cost most by the measure that is shown. */
function Costliest() {
  const { answer, error } = useAnswer("functions", tree.value);
  if (error || answer?.rows.length === 0) {
    return <Empty title="Nothing was recorded">The Trust view says why.</Empty>;
  }
  if (!answer) return null;
  const { rows, total, unit } = answer;
  return (
    <section>
      <h3>
        {measure.value?.label}: {formatValue(total, unit)}; no elapsed time is known
      </h3>
      <table class="numbers overview-lines">
        <tbody>
          {rows.slice(0, MOST_FUNCTIONS).map(({ id, name, exclusive }) => (
            <tr key={id}>
              <td>
                <ValueCell value={exclusive} total={total} unit={unit} />
              </td>
              <th scope="row">
                <Link onClick={() => go({ view: "sandwich", func: id })}>{name}</Link>
              </th>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Headline() {
  const current = profile.value;
  if (!current) return null;
  const { steps } = current;
  const ranks = Math.max(current.ranks, 1);
  const parts = [
    current.wall_ns > 0 ? formatTime(current.wall_ns) : "",
    ranks > 1 ? `${formatCount(ranks)} ranks, means` : "",
    steps ? `${formatCount(Math.round(steps.count / ranks))} steps of ${formatMean(steps)}` : "",
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

/** What limits the run, and the elapsed time of what is shown, divided completely and by line. */
function Account() {
  const { answer: account, error } = useAnswer("account", { file: tree.value.file ?? "" });
  if (error || account?.whole_ns === 0) return <Costliest />;
  if (!account) return null;
  const steps = account.steps || 1;
  return (
    <section>
      <ul class="overview-verdicts">
        {account.verdicts.map((verdict) => (
          <li key={verdict.text}>
            {verdict.line ? <SourceLink {...verdict}>{verdict.text}</SourceLink> : verdict.text}
          </li>
        ))}
      </ul>
      <h3>
        Where the time goes: {formatTime(account.whole_ns / steps)}
        {account.steps ? " a step" : " elapsed"}
      </h3>
      {account.steady && (
        <p>Steady state: {account.steady}; all views show it, as means of a step.</p>
      )}
      {account.besides && <p>Besides: {account.besides}.</p>}
      {account.setup && <p class="muted">Set-up: {account.setup}</p>}
      <Groups
        label="elapsed time by cause"
        groups={account.groups}
        total={account.whole_ns}
        steps={steps}
      />
      {account.gpu.length > 0 && (
        <>
          <p class="muted">The GPU, from its first to its last work:</p>
          <Groups
            label="the GPU's time"
            groups={account.gpu}
            total={account.gpu.reduce((sum, each) => sum + each.value, 0)}
            steps={steps}
          />
        </>
      )}
      <p class="muted">
        {account.steps ? "Time a step; share" : "Share"} of {account.base}; without deeper lines of
        yours.
      </p>
      <Places
        places={account.lines}
        value={(place) => (account.by_gpu ? place.gpu_ns : place.time_ns) / steps}
        total={account.lines_whole_ns / steps}
      />
      {account.setup_lines.length > 0 && (
        <>
          <p class="muted">Before the steady state, without imports, in all:</p>
          <Places
            places={account.setup_lines}
            value={(place) => place.time_ns}
            total={account.setup_whole_ns}
          />
        </>
      )}
      {account.others.length > 0 && (
        <>
          <p class="muted">Meanwhile, on other threads, without waits for locks:</p>
          <Places
            places={account.others}
            value={(place) => place.time_ns / steps}
            total={account.whole_ns / steps}
          />
        </>
      )}
    </section>
  );
}

function Groups(props: {
  label: string;
  groups: readonly PartAnswer[];
  total: number;
  steps: number;
}) {
  return (
    <Bar
      label={props.label}
      total={props.total / props.steps}
      unit="ns"
      parts={props.groups.map((part) => ({ ...leading(part), value: part.value / props.steps }))}
    />
  );
}

/** A part of a bar, which leads to the graph by its measure. */
function leading({ name, value, layer, metric }: PartAnswer) {
  const known = profile.value?.measures.some(({ key }) => key === metric);
  const show = () => go({ view: "flame", ...(known ? { metric } : {}) });
  return { name, value, color: palette(dark.value).layers[layer], show };
}

function Places(props: {
  places: readonly PlaceAnswer[];
  value: (place: PlaceAnswer) => number;
  total: number;
}) {
  return (
    <table class="numbers overview-lines">
      <tbody>
        {props.places.map((place) => (
          <tr key={`${place.file}:${place.line}`}>
            <td>
              <ValueCell value={props.value(place)} total={props.total} unit="ns" />
            </td>
            {place.line > 0 ? (
              <>
                <th scope="row">
                  <SourceLink {...place} />
                </th>
                <td class="overview-code">
                  <code>{place.text}</code>
                </td>
              </>
            ) : (
              <th scope="row" colSpan={2}>
                {place.text}
              </th>
            )}
            <td class="muted overview-cause">{place.spent_on}</td>
          </tr>
        ))}
      </tbody>
    </table>
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
            parts={pool.parts.map(leading)}
          />
        </div>
      ))}
    </section>
  );
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
