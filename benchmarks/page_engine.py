"""The page's engine: processor time of a switch, and the size of the one-file page.

Runs the engine in Node, which has the same JavaScript engine as Chromium. No tree is kept from before. At
first the engine's own code is not compiled yet; "again" is the same switch on other trees, after some
switches. The one-file page is that of the demo (`examples/torch_transformer.py`), if
torch is installed. Needs node (`make web` installs the page's packages).

    python benchmarks/page_engine.py
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from paired import Table, machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from deepcontext.ui.web.one_file import make_page, page_data
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from tests.synthetic import random_profile

DEMO = "examples/torch_transformer.py"
WEB = Path(__file__).resolve().parents[1] / "web"
SIZES = (10_000, 1_000_000)
SWITCHES = {
    "hide libraries": {},
    "show libraries": {"library": "1"},
    "tell lines apart": {"library": "1", "lines": "1"},
    "hide modules": {"hidden": "module"},
    "backward only": {"phase": "backward"},
    "split by phase": {"pivot": "phase"},
    "bottom-up": {"kind": "bottom_up"},
    "drop a function": {"edits": "drop:9"},
    "focus on a function": {"edits": "focus:9"},
}
ROUNDS = 3
# Each hides another function, so that all trees are new; the first ones compile the engine.
AGAIN, COMPILING = 6, 3


def measured(script: Path, folder: Path, nodes: int, *, again: int = 0) -> dict[str, list[float]]:
    """Return the median processor time of each switch at first, and then `again` times, ms."""
    data, asked = folder / "data", folder / "questions.json"
    profile = random_profile(nodes, depth=40)
    opened = OpenProfiles([OpenProfile.of_memory(profile, "made up")])
    data.write_text("\n".join(page_data(opened)), encoding="ascii")
    # The first question reads the columns, and is not counted.
    questions = [("flame", {"hidden": "scope"}), *(("flame", each) for each in SWITCHES.values())]
    questions.append(("table", {}))
    questions += [
        (
            "flame",
            {**each, "edits": ",".join(filter(None, [each.get("edits"), f"hide:{20 + number}"]))},
        )
        for number in range(again)
        for each in SWITCHES.values()
    ]
    asked.write_text(json.dumps(questions), encoding="utf-8")
    rounds = []
    for _ in range(ROUNDS):
        ran = subprocess.run(
            ["node", "--max-old-space-size=1024", str(script), str(data), str(asked)],
            check=True,
            capture_output=True,
        )
        result = json.loads(ran.stdout)
        assert not any("error" in each for each in result["answers"])
        rounds.append(result["took"])
    names = ["open, first graph", *SWITCHES, "table of operators"]
    times = [statistics.median(each) for each in zip(*rounds, strict=True)]
    rest = times[len(names) + COMPILING * len(SWITCHES) :]
    return {
        name: [
            time,
            *(
                [statistics.median(rest[at - 1 :: len(SWITCHES)])]
                if name in SWITCHES and rest
                else []
            ),
        ]
        for at, (name, time) in enumerate(zip(names, times, strict=False))
    }


def table() -> Table:
    """Measure, and return the table."""
    small, large = SIZES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["node", "tests/build_engine.mjs", name], cwd=WEB, check=True)
        script = folder / "run_engine.mjs"
        of_small = measured(script, folder, small, again=AGAIN)
        of_large = measured(script, folder, large)
    rows = [
        [
            what,
            f"{first:.1f}",
            "".join(f"{each:.1f}" for each in again),
            f"{of_large[what][0]:.1f}",
        ]
        for what, (first, *again) in of_small.items()
    ]
    notes = [
        f"{machine()}. Medians of {ROUNDS} processes with at most 1 GiB of JavaScript memory. Bounds of a "
        f"switch: 16 ms with {small:,} nodes, 250 ms with {large:,}."
    ]
    if importlib.util.find_spec("torch"):
        notes.append(file_size())
    head = [
        "processor time, ms",
        f"{small:,} nodes, at first",
        f"{small:,} nodes, again",
        f"{large:,} nodes, at first",
    ]
    return Table("The page's engine", head, rows, notes)


def file_size() -> str:
    """Return a sentence about the one-file page of an example."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.dcprof"
        command = ["-m", "deepcontext", "profile", "-q", "-o", str(path), DEMO]
        subprocess.run([sys.executable, *command], cwd=WEB.parent, check=True, capture_output=True)
        size = make_page(OpenProfiles.open([path])).size_bytes
        profile = path.stat().st_size
    return (
        f"The one-file page of `{DEMO}` has {size:,} bytes, its profile {profile:,}: the page takes "
        f"150,000 bytes and {(size - 150_000) / profile:.2f} times the profile (bound: 1.4 times)."
    )


if __name__ == "__main__":
    print(table().markdown())
