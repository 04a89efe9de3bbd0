"""Run the benchmarks and write their tables to docs/benchmarks.md: `make bench`."""

from __future__ import annotations

import datetime as dt
import importlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import evaluation

ROOT = Path(__file__).resolve().parent.parent
# Need a browser (tools/setup_browser.sh) or node, which a machine that measures overhead may lack.
IN_BROWSER = ("web_ui", "page_engine", "page_switches")
UNDER_VALGRIND = ("instructions",)
MODULES = (
    "operator_event",
    "ways_in",
    "memory_event",
    "collective_event",
    "training_steps",
    "cpu_sampling",
    "children",
    "native_frames",
    "growth",
    "many_paths",
    "jax_overhead",
    "jax_sampled_times",
    "gpu_drain",
    "gpu_visit",
    "start_up",
    "open_large",
    "import_traces",
    "merge_ranks",
    "analyzers",
)
HEAD = """# Benchmarks

Measured on {date} at commit {commit}, each table by the command above it; `make bench` measures all
tables and rewrites this page. Ratios are against the same program unprofiled, in one interleaved run;
absolute figures depend on the machine.

"""


def measure(name: str) -> str:
    """Run one benchmark in a new process, so that none finds what another has loaded."""
    command = [sys.executable, str(Path(__file__).resolve()), name]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def main(names: list[str]) -> None:
    if names[:1] == ["evaluation"]:
        evaluation.main(names[1:])
        return
    if names:
        for name in names:
            module = importlib.import_module(name)
            tables = module.tables() if hasattr(module, "tables") else [module.table()]
            print("\n".join(table.markdown() for table in tables), flush=True)
        return
    wanted = [
        *MODULES,
        *(UNDER_VALGRIND if shutil.which("valgrind") else ()),
        *(IN_BROWSER if importlib.util.find_spec("playwright") else ()),
    ]
    parts = []
    for name in wanted:
        if text := measure(name).strip():
            parts.append(f"`python benchmarks/run_all.py {name}`\n\n{text}")
            print(parts[-1], flush=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    today = dt.datetime.now(tz=dt.UTC).date()
    # Written by hand: which figures of the tables are held against which bars, and why some are missed.
    bars = (ROOT / "benchmarks" / "bars.md").read_text(encoding="utf-8") + "\n"
    head = HEAD.format(date=today, commit=commit) + bars
    text = head + "\n".join(part.strip() + "\n" for part in parts)
    (ROOT / "docs" / "benchmarks.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
