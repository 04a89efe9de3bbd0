"""Which share of a workload's time lies on a line of its model, and do the sums agree with torch.profiler's.

    python benchmarks/evaluation/attribution.py nanogpt torch --lines 10

Both profilers watch the same steps. `--lines` prints the lines with the most time, for a person to read.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from program import FRAMEWORKS, WORKLOADS, make_step

import deepcontext
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.model.tree import NO_NODE
from deepcontext.profiler.summaries.lines import nearest_user

FOLDER = Path(__file__).parent
# Lines that only call the model or its backward are not lines of it.
NOT_MODEL = {FOLDER / name for name in ("program.py", "training.py", "attribution.py")}
WRAPPER = "autograd::engine::evaluate_function: "
WARM_UP = 3


def observed(step: Any, steps: int, *, is_torch: bool) -> tuple[deepcontext.Profile, Any]:
    """Run steps under both profilers; return deepcontext's profile and torch.profiler's, or None."""
    reference: Any = contextlib.nullcontext()
    if is_torch:
        import torch

        reference = torch.profiler.profile()
    for _ in range(WARM_UP if is_torch else 0):  # compiling gives JAX's operations their lines
        float(step())
    with reference as other:
        deepcontext.start(None, jax_exact=not is_torch)
        for _ in range(steps):
            float(step())
        profile = deepcontext.stop()
    return profile, other


def by_place(profile: deepcontext.Profile, metric: str) -> dict[Phase, Counter[str]]:
    """Return the time of each phase on lines of the model, on other lines and on none."""
    time, user = profile.exclusive(metric), nearest_user(profile)
    found: dict[Phase, Counter[str]] = {}
    for node in np.flatnonzero(time > 0).tolist():
        place = "no line"
        if user[node] != NO_NODE:
            file = Path(profile.frame(int(user[node])).file)
            place = "other line" if file in NOT_MODEL else "model"
        phase = Phase(int(profile.tree.phase[node]))
        found.setdefault(phase, Counter())[place] += int(time[node])
    return found


def agreement(profile: deepcontext.Profile, reference: Any) -> dict[str, float]:
    """Return how counts and exclusive times of operators compare with those of torch.profiler."""
    calls = profile.metrics["call_duration_ns"]
    counts: Counter[str] = Counter()
    for node, count in zip(calls.node.tolist(), calls.count.tolist(), strict=True):
        counts[profile.frame(node).name] += count
    # `events()` leaves out an operator whose only child has its name.
    names = [event.name() for event in reference.profiler.kineto_results.events()]
    wanted = Counter(name for name in names if not name.startswith(WRAPPER))
    ours = int(profile.exclusive("host_time_ns").sum())
    theirs = sum(event.self_cpu_time_total for event in reference.events()) * 1000
    differ = sum(abs(counts[name] - wanted[name]) for name in counts | wanted)
    return {"calls": wanted.total(), "calls_that_differ": differ, "time_ratio": ours / theirs}


def print_lines(profile: deepcontext.Profile, metric: str, most: int) -> None:
    time, user = profile.exclusive(metric), nearest_user(profile)
    lines: Counter[tuple[str, int]] = Counter()
    for node in np.flatnonzero((time > 0) & (user != NO_NODE)).tolist():
        frame = profile.frame(int(user[node]))
        lines[frame.file, frame.line] += int(time[node])
    for (file, line), value in lines.most_common(most):
        text = Path(file).read_text("utf-8").splitlines()[line - 1].strip()
        print(f"{value / lines.total():7.1%}  {Path(file).name}:{line:<5} {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--size", choices=("tiny", "paper"), default="tiny")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument(
        "--lines", type=int, default=0, metavar="N", help="print the N hottest lines"
    )
    options = parser.parse_args()
    is_torch = options.framework == "torch"
    step = make_step(options.workload, options.framework, options.size)
    profile, reference = observed(step, options.steps, is_torch=is_torch)
    metric = "host_time_ns" if is_torch else "device_time_ns"
    if options.lines:
        print_lines(profile, metric, options.lines)
    found: dict[str, float] = agreement(profile, reference) if is_torch else {}
    for phase, times in by_place(profile, metric).items():
        found[phase.label] = times["model"] / times.total()
        found[f"{phase.label}, any line"] = 1 - times["no line"] / times.total()
        found[f"{phase.label}, of all"] = times.total()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
