// The page: first and second line, the changes made, and the chosen view.

import { useEffect, useState } from "preact/hooks";
import { about, failure, place, profile, spoken } from "../state";
import { Breadcrumbs } from "./breadcrumbs";
import { CompareView } from "./compare_view";
import { FindingsView } from "./findings_view";
import { FlameView } from "./flame_view";
import { Header } from "./header";
import { Help } from "./help";
import { onPageKey } from "./keys";
import { laterViews } from "./later_views";
import { OverviewView } from "./overview_view";
import { Waiting } from "./parts";
import { SandwichView } from "./sandwich_view";
import { SectionsView } from "./sections_view";
import { SourceView } from "./source_view";
import { TableView } from "./table_view";
import { Toolbar } from "./toolbar";
import { TrustView } from "./trust_view";

export function App() {
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
  return (
    <>
      <Header />
      <Toolbar />
      <Breadcrumbs />
      {failure.value && <Failure />}
      <Notices />
      <main class="main" aria-label={place.value.view}>
        <CurrentView />
      </main>
      <Help />
      <div class="spoken" aria-live="polite">
        {spoken.value}
      </div>
    </>
  );
}

function CurrentView() {
  const {
    Processes = Waiting,
    Ranks = Waiting,
    Roofline = Waiting,
    TimeLine = Waiting,
  } = laterViews.value;
  switch (place.value.view) {
    case "overview":
      return <OverviewView />;
    case "processes":
      return <Processes />;
    case "ranks":
      return <Ranks />;
    case "flame":
      return <FlameView key="flame" kind="top_down" />;
    case "bottom-up":
      return <FlameView key="bottom-up" kind="bottom_up" />;
    case "sandwich":
      return <SandwichView />;
    case "table":
      return <TableView />;
    case "source":
      return <SourceView />;
    case "compare":
      return <CompareView />;
    case "findings":
      return <FindingsView />;
    case "timeline":
      return <TimeLine />;
    case "roofline":
      return <Roofline />;
    case "trust":
      return <TrustView />;
    case "data":
      return <SectionsView />;
  }
}

function Failure() {
  const error = failure.value;
  if (!error) return null;
  return (
    <div class="banner" role="alert">
      <span>{error.message}</span>
      <button type="button" onClick={() => location.reload()}>
        Reload
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
      <button
        type="button"
        class="icon"
        aria-label="Close the notice"
        onClick={() => setOpen(false)}
      >
        ×
      </button>
    </div>
  );
}
