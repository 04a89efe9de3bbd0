// The first line: what is open, the views, search, theme and help.

import { useEffect, useRef } from "preact/hooks";
import type { View } from "../model/address";
import { formatTime } from "../model/format";
import { about, detailsOpen, go, helpOpen, place, profile, theme } from "../state";
import { Icon } from "./parts";
import { Search } from "./search_box";
import { tabs } from "./tabs";

const DETAILED: readonly View[] = ["flame", "bottom-up", "sandwich", "compare"];

export function Header() {
  const views = useRef<HTMLElement>(null);
  // On a narrow screen the views are a line that scrolls sideways; scroll to the chosen view.
  useEffect(() => {
    const chosen = views.current?.querySelector("[aria-current]");
    chosen?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [place.value.view]);
  const { view } = place.value;
  const profiles = about.value?.profiles ?? [];
  const current = profile.value;
  const warnings = current?.warnings.length ?? 0;
  return (
    <header class="header">
      <h1 class="unseen">{current?.name}</h1>
      <div class="brand">
        {profiles.length > 1 ? (
          <select
            aria-label="Profile"
            value={String(place.value.file)}
            onChange={(event) =>
              go({
                file: Number(event.currentTarget.value),
                zoom: -1,
                edits: [],
                func: -1,
                path: "",
              })
            }
          >
            {profiles.map((each, index) => (
              <option key={each.version + String(index)} value={String(index)}>
                {each.name}
              </option>
            ))}
          </select>
        ) : (
          <span class="brand-name" title={current?.command.join(" ")}>
            {current?.name}
          </span>
        )}
        <span class="muted brand-run">
          {current && current.wall_ns > 0 ? formatTime(current.wall_ns) : ""}
        </span>
      </div>
      <nav class="tabs" ref={views} aria-label="Views">
        {tabs().map((tab) => (
          <button
            key={tab.view}
            type="button"
            aria-current={tab.view === view ? "page" : undefined}
            onClick={() => go({ view: tab.view })}
          >
            {tab.label}
            {tab.view === "trust" && warnings > 0 && (
              <span class="tab-mark" title={`${warnings} warnings`}>
                {warnings}
              </span>
            )}
          </button>
        ))}
      </nav>
      <Search />
      <Icon
        label="Details"
        disabled={!DETAILED.includes(view)}
        aria-pressed={detailsOpen.value}
        title="Details (i)"
        onClick={() => {
          detailsOpen.value = !detailsOpen.value;
        }}
      >
        ◨
      </Icon>
      <Icon label={`Theme: ${theme.value}`} title={`Theme: ${theme.value} (d)`} onClick={nextTheme}>
        {theme.value === "dark" ? "☾" : theme.value === "light" ? "☀" : "◐"}
      </Icon>
      <Icon
        label="Keys"
        title="Keys (?)"
        onClick={() => {
          helpOpen.value = true;
        }}
      >
        ?
      </Icon>
    </header>
  );
}

export function nextTheme(): void {
  const next = { system: "dark", dark: "light", light: "system" } as const;
  theme.value = next[theme.value];
}
