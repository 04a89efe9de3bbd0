// What the analyzers found: what to change, why, and a link to the node.

import type { FindingRow } from "../api_types";
import { profile, showNode, tree } from "../state";
import { CopyButton, escaped } from "./copy";
import { Empty, Waiting } from "./parts";
import { useAnswer } from "./use_answer";

const MOST_PLACES = 8;

export function FindingsView() {
  const asked = useAnswer("findings", { file: tree.value.file });
  if (asked.error) return <Empty title="No findings">{asked.error}</Empty>;
  if (!asked.answer) return <Waiting />;
  const { findings, stored } = asked.answer;
  if (!findings.length) {
    return (
      <Empty title="Nothing found">
        None of the analyzers knows what to change in this profile. Where its time goes, Flame graph
        and Bottom-up show.
      </Empty>
    );
  }
  return (
    <div class="page scroll">
      <ol class="findings">
        {findings.map((finding, index) => (
          <Card key={`${finding.id}/${index}`} finding={finding} />
        ))}
        <li class="muted">
          {stored ? "As stored in " : "Found now; 'deepcontext analyze' stores findings in "}
          {profile.value?.name}.
        </li>
      </ol>
    </div>
  );
}

function Card(props: { finding: FindingRow }) {
  const { finding } = props;
  return (
    <li class="finding">
      <div class="finding-head">
        <span class={`badge ${finding.severity}`}>{finding.severity}</span>
        <h2>{finding.title}</h2>
        {finding.gain !== "" && <span class="finding-gain">up to {finding.gain}</span>}
      </div>
      <dl class="finding-texts">
        {finding.texts.map((each) => (
          <div key={each.name}>
            <dt>{each.name}</dt>
            <dd>{each.text}</dd>
          </div>
        ))}
      </dl>
      <p class="finding-nodes">
        {finding.nodes.slice(0, MOST_PLACES).map((node, index) => (
          <button key={node} type="button" onClick={() => showNode(node)}>
            {index === 0 ? "Show in the graph" : `place ${index + 1}`}
          </button>
        ))}
        <span class="muted">{finding.id}</span>
        <CopyButton what="the finding" text={() => markdown(finding)} />
      </p>
    </li>
  );
}

/** As `deepcontext analyze --markdown` writes a finding. */
function markdown(finding: FindingRow): string {
  const lines = finding.texts.map((each) => `- **${each.name}** ${escaped(each.text)}\n`);
  const severity = `- **severity** ${finding.severity} (\`${finding.id}\`)\n`;
  return `### ${escaped(finding.title)}\n\n${severity}${lines.join("")}`;
}
