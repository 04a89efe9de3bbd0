"""The ten workloads of the DeepContext paper under each profiler: `python benchmarks/run_all.py evaluation`.

Each run is a process of `evaluation/program.py`. Modes take turns within a round, in an order drawn anew.
Figures are added to a file of results, from which the tables of docs/evaluation.md are written, so that a
machine lent for ten minutes can measure some workloads at a time (`--only`).
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from paired import Table, machine

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(__file__).parent / "evaluation" / "program.py"
RESULTS = Path(__file__).parent / "evaluation" / "results.json"
PAGE = ROOT / "docs" / "evaluation.md"
BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"
OTHERS = (
    " Other programs ran, so that times say little (see *plain, again*), and samplers, which sample by the "
    "clock, took more processor time for each step. Memory, results and attribution do not depend on it."
)
PYTHON = sys.executable
DEEPCONTEXT = (PYTHON, "-m", "deepcontext")
WORKLOADS = {
    "dlrm": "DLRM-small",
    "unet": "U-Net",
    "resnet": "ResNet-50",
    "vit": "ViT",
    "conformer": "Conformer",
    "gnn": "GNN",
    "transformer_big": "Transformer-Big",
    "llama": "Llama 3",
    "gemma": "Gemma",
    "nanogpt": "nanoGPT",
}
# Steps of a run: a step of PyTorch takes longer here, on one thread.
STEPS = {"torch": 60, "jax": 150}
NAMES = {"torch": "PyTorch", "jax": "JAX"}
PLAIN, AGAIN = "plain", "plain, again"
_TRIES = 2  # of a run


@dataclass(frozen=True)
class Mode:
    """One way to run a program.

    Attributes:
        before: words between `python` and the program.
        after: options of the program.
        result: file or folder that the profiler writes, below the run's folder.
        look: command that shows the result, which follows it; () where the program itself has shown it.
        needs: command or module without which it does not run.
        rounds: rounds at most: one for samplers, which are shown for comparison only.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    result: str = ""
    look: tuple[str, ...] = ()
    needs: str = ""
    rounds: int = 99


def _deepcontext(*options: str) -> Mode:
    words = ("-m", "deepcontext", "profile", "--no-report", *options, "-o", "{folder}/run.dcprof")
    return Mode(words, result="run.dcprof", look=(*DEEPCONTEXT, "report"))


_COMMON = {
    PLAIN: Mode(),
    AGAIN: Mode(),
    "deepcontext": _deepcontext(),
    "deepcontext --native": _deepcontext("--native"),
}
_SAMPLERS = {
    "py-spy": Mode(
        ("py-spy", "record", "-o", "{folder}/flame.svg", "--", PYTHON),
        result="flame.svg",
        needs="py-spy",
        rounds=1,
    ),
    "scalene": Mode(
        ("-m", "scalene", "run", "--cpu-only", "-o", "{folder}/scalene.json"),
        result="scalene.json",
        look=(PYTHON, "-m", "scalene", "view", "--cli"),
        needs="scalene",
        rounds=1,
    ),
}


def _own(profiler: str, result: str, needs: str = "") -> Mode:
    return Mode(after=("--profiler", profiler), result=result, needs=needs)


MODES: Mapping[str, Mapping[str, Mode]] = {
    "torch": {
        **_COMMON,
        "torch.profiler": _own("torch", "trace.json"),
        "torch.profiler with_stack": _own("torch-stack", "trace.json"),
        "Proton": _own("proton", "proton.hatchet", "triton"),
        **_SAMPLERS,
    },
    "jax": {**_COMMON, "jax.profiler": _own("jax", "plugins"), **_SAMPLERS},
}
# What the paper gives, as far as its public summaries have it: medians of NVIDIA and of AMD.
PAPER_TIME = {
    "torch": {
        "deepcontext": "1.12x, 1.50x",
        "deepcontext --native": "1.50x, 1.90x",
        "torch.profiler": "1.06x, 1.01x",
    },
    "jax": {
        "deepcontext": "1.33x, 1.28x",
        "deepcontext --native": "1.60x, 1.46x",
        "jax.profiler": "1.17x, 1.10x",
    },
}
PAPER_MEMORY = {
    "deepcontext": "1.00x to 2.44x",
    "torch.profiler": "1.29x to 27.28x",
    "jax.profiler": "1.27x to 6.98x",
}


@dataclass
class Results:
    """Figures by program and mode, in the order of the rounds, and where they come from."""

    about: dict[str, object] = field(default_factory=dict)
    runs: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    failed: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Results:
        return cls(**json.loads(path.read_text("utf-8"))) if path.exists() else cls()

    def save(self, path: Path) -> None:
        # One line a mode, so that a changed figure is a changed line.
        programs = [
            f"  {json.dumps(program)}: {{\n"
            + ",\n".join(f"   {json.dumps(m)}: {json.dumps(f)}" for m, f in modes.items())
            + "}"
            for program, modes in self.runs.items()
        ]
        runs = ",\n".join(programs)
        about, failed = json.dumps(self.about, indent=1), json.dumps(self.failed)
        text = f'{{"about": {about},\n "failed": {failed},\n "runs": {{\n{runs}}}}}\n'
        path.write_text(text, encoding="utf-8")

    def add(self, program: str, mode: str, figures: Mapping[str, float]) -> None:
        kept = self.runs.setdefault(program, {}).setdefault(mode, {})
        for name, figure in figures.items():
            kept.setdefault(name, []).append(figure)

    def ratios(self, program: str, mode: str, figure: str) -> list[float]:
        """Return a figure of a mode by that of the plain run in the same round."""
        modes = self.runs[program]
        if figure == "peak_bytes" and mode == "py-spy":
            return []  # it may be that of the sampler, which is another process
        if figure not in modes.get(mode, {}) or figure not in modes.get(PLAIN, {}):
            return []
        pairs = zip(modes[mode][figure], modes[PLAIN][figure], strict=False)
        return [one / other for one, other in pairs]


class FailedRunError(Exception):
    """A program did not end well; with its standard error."""


def run(workload: str, framework: str, mode: Mode, size: str) -> dict[str, float]:
    """Run a program once; return its figures: times in s, sizes in bytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = [word.format(folder=folder) for word in mode.before]
        first = [] if before and not before[0].startswith("-") else [PYTHON]
        # scalene reads options of the program only after three dashes.
        dashes = ["---"] if "scalene" in before else []
        words = [workload, framework, "--size", size, "--steps", str(STEPS[framework])]
        command = [*first, *before, str(PROGRAM), *dashes, *words, "--output", name, *mode.after]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
        ended = time.monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise FailedRunError(
                f"{' '.join(command)} ended with {status}:\n{said.decode()[-3000:]}"
            )
        found = json.loads((folder / "times.json").read_text("utf-8"))
        times, steps = found["times"], found["steps_ns"]
        stopped = times.get("written", ended) - times["end"]
        figures = {
            "step_s": statistics.median(steps[len(steps) // 2 :]) / 1e9,
            "step_cpu_s": found["cpu_ns"] / 1e9,
            "peak_bytes": usage.ru_maxrss * 1024,
            "stop_s": stopped,
        }
        if mode.result:
            result = folder / mode.result
            figures["result_bytes"] = _bytes(result)
            figures["look_s"] = times.get("shown", times["end"] + stopped) - times["end"]
        if mode.look:
            begun = time.monotonic()
            subprocess.run([*mode.look, str(result)], stdout=subprocess.DEVNULL, check=True)
            figures["look_s"] = stopped + time.monotonic() - begun
        return figures


def run_again(
    results: Results, name: str, workload: str, framework: str, mode: Mode, size: str
) -> dict[str, float]:
    """Return the figures of the first run that ends well, of two, and {} without one.

    Runs under a foreign profiler may fail, and are counted.
    """
    for _ in range(_TRIES):
        try:
            return run(workload, framework, mode, size)
        except FailedRunError as error:
            if name in _COMMON:
                raise
            print(error, file=sys.stderr, flush=True)
            failed = results.failed.setdefault(f"{workload} {framework}", {})
            failed[name] = failed.get(name, 0) + 1
    return {}


def attribution(workload: str, framework: str, size: str) -> dict[str, float]:
    """Return the figures of `evaluation/attribution.py`."""
    program = PROGRAM.with_name("attribution.py")
    command = (PYTHON, str(program), workload, framework, "--size", size)
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def _bytes(path: Path) -> int:
    return sum(
        f.stat().st_size for f in (path.rglob("*") if path.is_dir() else [path]) if f.is_file()
    )


def can_run(mode: Mode) -> bool:
    if not mode.needs:
        return True
    if mode.needs == "triton":  # Proton sees GPUs only
        return shutil.which("nvidia-smi") is not None and _has("triton")
    return shutil.which(mode.needs) is not None or _has(mode.needs)


def _has(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def measure(programs: Sequence[tuple[str, str]], rounds: int, size: str, path: Path) -> None:
    """Measure programs, replacing their older figures; the file is written after each."""
    results = Results.load(path)
    known = results.about
    results.about = known | about(size)
    if known.get("commit") == results.about["commit"]:
        results.about["begun"] = known["begun"]
    loads = []
    for workload, framework in programs:
        program = f"{workload} {framework}"
        results.runs[program] = {}
        results.failed.pop(program, None)
        results.add(program, "attribution", attribution(workload, framework, size))
        for turn in range(rounds):
            loads.append(os.getloadavg()[0])
            modes = [
                (name, mode)
                for name, mode in MODES[framework].items()
                if turn < mode.rounds and can_run(mode)
            ]
            random.shuffle(modes)
            for name, mode in modes:
                figures = run_again(results, name, workload, framework, mode, size)
                results.add(program, name, figures)
        print(program, file=sys.stderr, flush=True)
        is_busy = bool(loads) and max(loads) > 2 * len(os.sched_getaffinity(0))
        results.about["others"] = OTHERS if is_busy else ""
        results.about["load"] = f"{min(loads):.1f} to {max(loads):.1f}" if loads else ""
        results.about["ended"] = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d %H:%M} UTC"
        results.save(path)


def about(size: str) -> dict[str, object]:
    names = ("torch", "jax", "transformers", "py-spy", "scalene", "triton")
    versions = {name: metadata.version(name) for name in names if _has(name)}
    command = ("git", "rev-parse", "--short", "HEAD")
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "machine": machine(),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "commit": commit.stdout.strip(),
        "begun": f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d %H:%M} UTC",
        "size": size,
    }


def _spread(ratios: Sequence[float]) -> str:
    if not ratios:
        return ""
    middle = f"{statistics.median(ratios):.2f}x"
    return middle if len(ratios) == 1 else f"{middle} ({min(ratios):.2f} to {max(ratios):.2f})"


@dataclass(frozen=True)
class Tables:
    """The tables of a framework.

    Attributes:
        programs: what was measured, in the order of the paper.
        modes: what was measured besides the plain run.
    """

    results: Results
    framework: str
    programs: Sequence[str]
    modes: Sequence[str]

    @classmethod
    def of(cls, results: Results, framework: str) -> Tables:
        programs = [p for p in (f"{w} {framework}" for w in WORKLOADS) if p in results.runs]
        measured = {mode for program in programs for mode in results.runs[program]}
        return cls(results, framework, programs, [m for m in MODES[framework] if m in measured])

    def summary(self) -> Table:
        paper_time, paper_memory = PAPER_TIME[self.framework], PAPER_MEMORY
        rows = [
            [
                mode,
                self._middle(mode, "step_s"),
                paper_time.get(mode, ""),
                self._middle(mode, "step_cpu_s"),
                self._middle(mode, "peak_bytes"),
                paper_memory.get(mode, ""),
                self._end(mode, "result_bytes", 1e-6, "MB"),
                self._end(mode, "stop_s", 1.0, "s"),
                self._end(mode, "look_s", 1.0, "s"),
            ]
            for mode in self.modes
            if mode != PLAIN
        ]
        note = (
            "Medians over the workloads, the largest in brackets. Times and memory are of the plain run in "
            f"the same round; *{AGAIN}* is the noise. *Processor time* is of all threads. *Paper*: its "
            "medians on NVIDIA and on AMD, and its range of memory over both frameworks. *Result* is after "
            f"{STEPS[self.framework]} steps. *Stop* is the time from the end of the last step until the "
            "result is written, without what the plain run takes to end. *Until it can be read* adds "
            "`deepcontext report`, the table of torch.profiler, or `scalene view --cli`; starting a viewer "
            "of traces is not in it."
        )
        columns = ["profiler", "time of a step", "paper", "processor time of a step", "peak memory"]
        columns += ["paper", "result", "stop", "until it can be read"]
        return Table(f"{NAMES[self.framework]}: medians", columns, rows, [note])

    def details(self, title: str, figure: str) -> Table:
        modes = [mode for mode in self.modes if mode != PLAIN]
        rows = []
        for program in (p for p in self.programs if PLAIN in self.results.runs[p]):
            plain = statistics.median(self.results.runs[program][PLAIN][figure])
            shown = f"{plain / 1e6:.0f} MB" if figure == "peak_bytes" else f"{plain * 1e3:.1f} ms"
            cells = [_spread(self.results.ratios(program, mode, figure)) for mode in modes]
            rows.append([WORKLOADS[program.split()[0]], shown, *cells])
        columns = ["workload", PLAIN, *modes]
        note = "Of the plain run in the same round: median of the rounds (lowest to highest)."
        return Table(f"{NAMES[self.framework]}: {title}", columns, rows, [note])

    def attribution(self) -> Table:
        rows = []
        for program in self.programs:
            found = self.results.runs[program].get("attribution", {})
            # Without a gradient, the operations of a JAX program are in no phase.
            found = {"forward": found.get("other", [])} | found if "forward" not in found else found
            row = [WORKLOADS[program.split()[0]]]
            row += [
                f"{found[name][0]:.2%}" if found.get(name) else ""
                for name in ("forward", "backward")
            ]
            if "calls" in found:
                row += [f"{found['calls'][0]:,.0f}", f"{found['calls_that_differ'][0]:,.0f}"]
                row += [f"{found['time_ratio'][0]:.4f}"]
            rows.append(row)
        columns = ["workload", "forward on a line of the model", "backward on a line of the model"]
        notes = ["Share of the time in operations of compiled programs, all executions traced."]
        if self.framework == "torch":
            columns += ["operator calls by torch.profiler", "calls that differ"]
            columns += ["exclusive time, of torch.profiler's"]
            notes = ["Share of the time in operators. Both profilers watched the same ten steps."]
        return Table(f"{NAMES[self.framework]}: attribution", columns, rows, notes)

    def _middle(self, mode: str, figure: str) -> str:
        ratios = (self.results.ratios(program, mode, figure) for program in self.programs)
        found = [statistics.median(each) for each in ratios if each]
        return f"{statistics.median(found):.2f}x ({max(found):.2f})" if found else ""

    def _end(self, mode: str, figure: str, scale: float, unit: str) -> str:
        found = [
            scale * (statistics.median(modes[mode][figure]) - self._plain_end(modes, mode, figure))
            for modes in (self.results.runs[program] for program in self.programs)
            if figure in modes.get(mode, {})
        ]
        return f"{statistics.median(found):.2f} {unit} ({max(found):.2f})" if found else ""

    def _plain_end(
        self, modes: Mapping[str, Mapping[str, Sequence[float]]], mode: str, figure: str
    ) -> float:
        """Return how long the program takes to end anyway, where the end of the process was measured."""
        is_own = MODES[self.framework][mode].after
        is_size = figure == "result_bytes"
        return 0.0 if is_own or is_size else statistics.median(modes[PLAIN]["stop_s"])


def tables(results: Results | None = None) -> list[Table]:
    results = results or Results.load(RESULTS)
    made = [Tables.of(results, framework) for framework in NAMES]
    made = [each for each in made if each.programs]
    return [
        *(each.summary() for each in made),
        *(each.details("time of a steady step", "step_s") for each in made),
        *(each.details("peak resident memory", "peak_bytes") for each in made),
        *(each.attribution() for each in made),
    ]


def write_page(results: Results) -> None:
    head = (
        "{machine}, {versions}. Size *{size}*, commit {commit}, {begun} to {ended}; load of the machine "
        "before the rounds, the benchmark's own included: {load}.{others}\n".format(**results.about)
    )
    for program, modes in results.failed.items():
        for mode, count in modes.items():
            workload, framework = program.split()
            runs = count + len(results.runs[program].get(mode, {}).get("step_s", []))
            name = f"{WORKLOADS[workload]} in {NAMES[framework]}"
            head += (
                f"\n{mode} failed with {name} {count} of {runs} times; these runs are left out.\n"
            )
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    made = "\n".join(table.markdown() for table in tables(results)).replace("## ", "### ")
    PAGE.write_text(f"{before}{BEGIN}\n{head}\n{made}\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="run_all.py evaluation", description=__doc__)
    parser.add_argument("--size", choices=("tiny", "paper"), default="tiny")
    parser.add_argument("--rounds", type=int, default=3, help="0: only where the time lies")
    parser.add_argument(
        "--only", nargs="*", default=[], help="workloads, frameworks, or both as in dlrm/torch"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the figures")
    parser.add_argument("--no-run", action="store_true", help="only print the tables")
    parser.add_argument("--write-page", action="store_true", help="write docs/evaluation.md")
    options = parser.parse_args(arguments)
    programs = [
        (workload, framework)
        for workload, framework in itertools.product(WORKLOADS, MODES)
        if not options.only or {workload, framework, f"{workload}/{framework}"} & {*options.only}
    ]
    if not options.no_run:
        measure(programs, options.rounds, options.size, options.results)
    results = Results.load(options.results)
    print("\n".join(table.markdown() for table in tables(results)))
    if options.write_page:
        write_page(results)


if __name__ == "__main__":
    main(sys.argv[1:])
