// The page: first and second line, the changes made, and the chosen view.

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { View } from "../model/address";
import { about, CHANGED, failure, place, profile, spoken } from "../state";
import { Breadcrumbs } from "./breadcrumbs";
import { CompareView } from "./compare_view";
import { FindingsView } from "./findings_view";
import { FlameView } from "./flame_view";
import { Header } from "./header";
import { Help } from "./help";
import { onPageKey } from "./keys";
import { laterViews } from "./later_views";
import { OverviewView } from "./overview_view";
import { Palette } from "./palette";
import { Icon, Waiting } from "./parts";
import { SandwichView } from "./sandwich_view";
import { SectionsView } from "./sections_view";
import { SourceView } from "./source_view";
import { TableView } from "./table_view";
import { Toolbar } from "./toolbar";
import { TrustView } from "./trust_view";

export function App() {
  const { view } = place.value;
  useEffect(() => {
    window.addEventListener("keydown", onPageKey);
    return () => window.removeEventListener("keydown", onPageKey);
  }, []);
  if (!about.value || !profile.value) {
    return failure.value ? (
      <main class="page">
        <Failure />
      </main>
    ) : (
      <Waiting />
    );
  }
  const Shown = OWN[view] ?? laterViews.value[view] ?? Waiting;
  return (
    <>
      <Header />
      <Toolbar />
      <Breadcrumbs />
      {failure.value && <Failure />}
      <Notices />
      <main class="main" aria-label={view}>
        <Shown />
      </main>
      <Help />
      <Palette />
      <div class="spoken" aria-live="polite">
        {spoken.value}
      </div>
    </>
  );
}

const OWN: Partial<Record<View, FunctionComponent>> = {
  overview: OverviewView,
  flame: () => <FlameView kind="top_down" />,
  "bottom-up": () => <FlameView kind="bottom_up" />,
  sandwich: SandwichView,
  table: TableView,
  source: SourceView,
  compare: CompareView,
  findings: FindingsView,
  trust: TrustView,
  data: SectionsView,
};

function Failure() {
  const error = failure.value;
  if (!error) return null;
  return (
    <div class="banner" role="alert">
      <span>{error.message}</span>
      <button type="button" onClick={() => location.reload()}>
        {error.status === CHANGED ? "Show the newer run" : "Reload"}
      </button>
    </div>
  );
}

function Notices() {
  const [open, setOpen] = useState(true);
  const notices = about.value?.notices ?? [];
  if (!notices.length || !open) return null;
  return (
    <div class="banner quiet">
      <span>{notices.join("; ")}</span>
      <Icon label="Close" onClick={() => setOpen(false)}>
        ×
      </Icon>
    </div>
  );
}
