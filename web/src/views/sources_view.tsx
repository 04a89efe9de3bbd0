// A source file of several profiles side by side, with the cost of its lines in each.

import type { FileRow } from "../engine/answers";
import { compared, go, place, tree } from "../state";
import { profileName } from "./node_tip";
import { Empty, Select, Waiting } from "./parts";
import { SourceFile } from "./source_view";
import { useAnswer } from "./use_answer";

export function Sources() {
  const [base] = compared.value;
  const { answer, error } = useFiles(base);
  if (error) return <Empty title="No source">{error}</Empty>;
  if (!answer) return <Waiting />;
  const { files } = answer;
  const chosen = files.find(({ file }) => file === place.value.path) ?? files[0];
  if (!chosen) return <Empty title="The base names no source file" />;
  return (
    <>
      <div class="subtabs">
        <Select
          label="File"
          value={chosen.file}
          options={files.map(({ file, shown }) => [file, shown])}
          onChoose={(path) => go({ path, line: 0 })}
        />
      </div>
      <div class="split sources">
        {compared.value.map((file, side) => (
          <Side key={file} file={file} title={profileName(side)} of={chosen} />
        ))}
      </div>
    </>
  );
}

function useFiles(file: number) {
  return useAnswer("files", { file: file ? String(file) : "", metric: tree.value.metric });
}

function Side(props: { file: number; title: string; of: FileRow }) {
  const { file, of } = props;
  const { answer } = useFiles(file);
  // The runs may have begun in different folders.
  const own =
    answer?.files.find(({ shown }) => shown === of.shown) ??
    answer?.files.find(({ shown }) => last(shown) === last(of.shown));
  return (
    <section class="split-main" aria-label={props.title}>
      <p class="sandwich-title">
        <b>{props.title}</b>
      </p>
      {own ? (
        <SourceFile file={file ? String(file) : ""} path={own.file} of={props.title} />
      ) : (
        answer && <Empty title="This profile names no such file" />
      )}
    </section>
  );
}

function last(path: string): string | undefined {
  return path.split("/").at(-1);
}
