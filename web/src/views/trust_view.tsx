// How far the numbers can be trusted, and what was run.

import { formatCount, formatTime } from "../model/format";
import { profile } from "../state";
import { Pairs, words } from "./parts";

const MANY_FACTS = 4;

/** Details of a collector, folded because few readers need them. */
function Facts(props: { facts: Readonly<Record<string, string>> }) {
  const facts = Object.entries(props.facts);
  const text = facts.map(([name, value]) => `${name} ${value}`).join("; ");
  if (facts.length <= MANY_FACTS) return <div class="muted">{text}</div>;
  return (
    <details class="muted">
      <summary>{facts.length} figures</summary>
      {text}
    </details>
  );
}

export function TrustView() {
  const current = profile.value;
  if (!current) return null;
  const cost = current.hook_cost_ns_per_event;
  return (
    <div class="page scroll" tabIndex={0} role="region" aria-label="Trust">
      <div class="prose">
        <section>
          <h2>Warnings</h2>
          {current.warnings.length ? (
            <ul class="warnings">
              {current.warnings.map((warning) => (
                <li key={warning}>{warning}</li>
              ))}
            </ul>
          ) : (
            <p class="good">None: all requested collectors ran.</p>
          )}
        </section>
        <section>
          <h2>Collectors</h2>
          <table class="pairs-table">
            <thead>
              <tr>
                <th scope="col">collector</th>
                <th scope="col">status</th>
                <th scope="col">reason and details</th>
              </tr>
            </thead>
            <tbody>
              {current.collectors.map((each) => (
                <tr key={each.name}>
                  <th scope="row">{each.name}</th>
                  <td>
                    <span class={`badge ${each.status}`}>{each.status}</span>
                  </td>
                  <td>
                    {each.reason}
                    {Object.keys(each.details).length > 0 && <Facts facts={each.details} />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <section>
          <h2>Counters</h2>
          <Pairs
            rows={[
              ...Object.entries(current.counters).map(
                ([name, value]) => [words(name), formatCount(value)] as const,
              ),
              ...(cost === null
                ? []
                : [
                    [
                      "cost of one event, measured in this run",
                      formatTime(Math.round(cost)),
                    ] as const,
                  ]),
            ]}
          />
        </section>
        <section>
          <h2>Run</h2>
          <Pairs rows={current.facts as [string, string][]} />
        </section>
      </div>
    </div>
  );
}
