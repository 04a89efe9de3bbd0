"""A whole visit to a machine with a GPU: each part with a limit, and one page of what it showed.

    visit.py PYTHON [NAME=SECONDS ...]

Runs the parts of `run.sh` one after the other. The files go to a folder below `benchmarks/visits` (or to
$OUT) that is named by date and card. A part that does not end in time is ended with its stacks on record
(`stacks.py`), and the next one begins. Where there is no GPU, the parts run on the fakes: most tests are
then skipped with the reason. `README.md` of the folder says which lines of the documentation the visit may
change; it is written anew after each part.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import stacks

HERE: Final = Path(__file__).resolve().parent
_ROOT: Final = HERE.parents[1]


@dataclass(frozen=True)
class Part:
    """A part of `run.sh`.

    Attributes:
        name: its name there; the summaries that it writes begin with it or with one of `also`.
        limit_s: it is ended then.
        shows: what the documentation may say if all its tests passed.
        also: further summaries.
    """

    name: str
    limit_s: int
    shows: str
    also: tuple[str, ...] = ()


PARTS: Final = (
    Part(
        "visit",
        420,
        "README.md, the row NVIDIA: this card and release of CUDA; docs/reference/nvidia.md, the first lines",
        ("times",),
    ),
    Part(
        "stalls",
        420,
        "docs/reference/nvidia.md, 'Stalls', and the option's help: consent is no longer needed (20 of 20)",
    ),
    Part(
        "overhead", 560, "docs/benchmarks.md, the tables of this card; README.md, overhead on a GPU"
    ),
    Part("unprivileged", 200, "docs/reference/nvidia.md: recording needs no privileges"),
)


def main(arguments: list[str]) -> int:
    """Run the parts; return 0 if each ended in time, whatever its tests found."""
    python, *limits = arguments
    chosen = dict(each.split("=") for each in limits)
    out = Path(os.environ.get("OUT") or _ROOT / "benchmarks" / "visits" / _name())
    out.mkdir(parents=True, exist_ok=True)
    ended: dict[str, str] = {}
    for part in PARTS:
        if chosen and part.name not in chosen:
            continue
        begun = time.monotonic()
        has_ended = _run(part, python, out, float(chosen.get(part.name, part.limit_s)))
        seconds = time.monotonic() - begun
        ended[part.name] = f"{seconds:.0f} s" if has_ended else f"ended after {seconds:.0f} s"
        (out / "README.md").write_text(page(out, ended), encoding="utf-8")
    print((out / "README.md").read_text(encoding="utf-8"))
    return int(any(text.startswith("ended") for text in ended.values()))


def page(out: Path, ended: dict[str, str]) -> str:
    """Return what the visit showed, and which lines may change."""
    rows = ["| part | time | tests | may change |", "|---|---|---|---|"]
    for part in PARTS:
        tests = _outcomes(out, part)
        counts = ", ".join(f"{tests.count(each)} {each}" for each in sorted(set(tests)))
        has_all = not os.environ.get("DEEPCONTEXT_FAKES") and (
            bool(tests) and set(tests) == {"passed"} and ended.get(part.name, "ended")[0] != "e"
        )
        change = part.shows if has_all else "nothing"
        rows.append(
            f"| {part.name} | {ended.get(part.name, 'not run')} | {counts or 'none'} | {change} |"
        )
    stuck = (
        sorted(file.name for file in (out / "stacks").glob("*"))
        if (out / "stacks").exists()
        else []
    )
    return "\n".join([
        f"# Visit {out.name}",
        "",
        "A line may change only where each test of its part passed on a GPU; skipped is not passed.",
        "",
        *rows,
        "",
        f"Stacks of programs that hung: {', '.join(stuck) or 'none'}.",
        "",
    ])


def _outcomes(out: Path, part: Part) -> list[str]:
    found: list[str] = []
    for name in (part.name, *part.also):
        file = out / f"summary-{name}.json"
        if file.exists():
            summary: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            found += [str(test["outcome"]) for test in summary["tests"].values()]
    return found


def _run(part: Part, python: str, out: Path, limit_s: float) -> bool:
    """Run a part; return whether it ended in time."""
    command = ["bash", str(HERE / "run.sh"), python, part.name]
    environment = {**os.environ, "OUT": str(out)}
    with (out / f"log-{part.name}.txt").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            stacks.end(process.pid, out / "stacks" / f"{part.name}.txt")
            process.wait()
            return False
    return True


def _name() -> str:
    """Return the folder's name: date and card."""
    asked = shutil.which("nvidia-smi")
    card = ""
    if asked:
        done = subprocess.run(
            [asked, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        card = done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ""
    short = re.sub(r"\W+", "-", card.lower().replace("nvidia", "")).strip("-")
    return f"{time.strftime('%Y-%m-%d', time.gmtime())}-{short or 'fakes'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
