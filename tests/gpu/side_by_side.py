"""Run tests of this folder beside each other, each in a pytest of its own, and join what they wrote.

    side_by_side.py PART MOST LIMIT_S FILE ...

At most MOST tests run at once; each ends after LIMIT_S at the latest, and is then told as "hung". $OUT (else
build/gpu) gets table-PART.md and summary-PART.json, as of one pytest, and a folder for each test with its log
and its last profile. A visit is short: ten tests at a time took 3 minutes on 16 cores, one after the other
they take 9. Tests that compare times do not belong here.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import stacks

HERE: Final = Path(__file__).resolve().parent
_PYTEST: Final = (
    "-q",
    "-c",
    str(HERE / "pytest.ini"),
    "--rootdir",
    str(HERE),
    "--confcutdir",
    str(HERE),
)


def collect(files: list[str]) -> list[str]:
    """Return the ids of the tests of some files of this folder, "test_a.py::test_b[c]"."""
    command = [sys.executable, "-m", "pytest", *_PYTEST, "--collect-only", *files]
    with tempfile.TemporaryDirectory() as unused:  # for the files of a run that runs nothing
        environment = {**os.environ, "OUT": unused}
        done = subprocess.run(
            command, cwd=HERE, env=environment, capture_output=True, text=True, check=False
        )
    return [line for line in done.stdout.splitlines() if "::" in line and " " not in line]


def run(test: str, folder: Path, limit_s: float) -> dict[str, Any]:
    """Run one test; return its summary, and leave table, log and profile in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / "work"
    environment = {**os.environ, "OUT": str(folder), "DEEPCONTEXT_GPU_PART": "one"}
    begun = time.monotonic()
    command = [sys.executable, "-m", "pytest", *_PYTEST, "--basetemp", str(work), test]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=HERE, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            process.wait(limit_s)
            has_ended = True
        except subprocess.TimeoutExpired:
            has_ended = False
            stacks.end(process.pid, folder / "stacks.txt")  # of its programs, too
            process.wait()
    for profile in sorted(work.rglob("*.dcprof"))[:1]:
        shutil.copy(profile, folder / "last.dcprof")
    shutil.rmtree(work, ignore_errors=True)
    summary: dict[str, Any] = json.loads((folder / "summary-one.json").read_text(encoding="utf-8"))
    if not has_ended:
        spent = round(time.monotonic() - begun, 1)
        for each in summary["tests"].values():
            each.update(outcome="hung", seconds=spent, why=f"ended after {limit_s:.0f} s")
    return summary


def join(part: str, summaries: list[dict[str, Any]], folders: list[Path], out: Path) -> None:
    """Write the tests' tables and summaries as those of one part."""
    whole = {**summaries[0], "part": part, "tests": {}}
    rows = ["| check | measured | bound |", "|---|---|---|"]
    for summary, folder in zip(summaries, folders, strict=True):
        whole["tests"].update(summary["tests"])
        rows += (folder / "table-one.md").read_text(encoding="utf-8").splitlines()[2:]
    outcomes = [each["outcome"] for each in whole["tests"].values()]
    whole["outcomes"] = {each: outcomes.count(each) for each in sorted(set(outcomes))}
    whole["elapsed_s"] = round(sum(summary["elapsed_s"] for summary in summaries), 1)
    whole["not_reached"] = [
        name for name, each in whole["tests"].items() if each["outcome"] == "not reached"
    ]
    text = json.dumps(whole, indent=1) + "\n"
    (out / f"summary-{part}.json").write_text(text, encoding="utf-8")
    (out / f"table-{part}.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run all tests of the files; return 0 if each passed or was skipped."""
    part, most, limit_s, *files = arguments
    out = Path(os.environ.get("OUT") or HERE.parents[1] / "build" / "gpu")
    tests = collect(files)
    if not tests:
        sys.exit(f"no tests in {' '.join(files)}")
    folders = [out / "tests" / re.sub(r"\W+", "_", test) for test in tests]
    with concurrent.futures.ThreadPoolExecutor(int(most)) as pool:
        jobs = [
            pool.submit(run, test, folder, float(limit_s))
            for test, folder in zip(tests, folders, strict=True)
        ]
        summaries = [job.result() for job in jobs]
    join(part, summaries, folders, out)
    failed = 0
    for summary in summaries:
        for name, each in summary["tests"].items():
            print(
                f"{each['outcome']:8} {each.get('seconds', 0):6.1f} s  {name}  {each.get('why', '')}"
            )
            failed += each["outcome"] not in {"passed", "skipped"}
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
