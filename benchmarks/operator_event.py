"""What one operator event costs: `torch.add` on 8 elements in a tight loop."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from observers import OBSERVERS
from paired import Table, added, interleave, machine, quiet_descriptors

CALLS = 5000
MORE_CALLS = 25_000
DEPTHS = (3, 11, 41)
ROUNDS = 21
FIXED_FRAMES = 8  # from the module to the loop, without those of `at_depth`


def loop(left: torch.Tensor, right: torch.Tensor, calls: int = CALLS) -> float:
    begun = time.thread_time_ns()
    for _ in range(calls):
        torch.add(left, right)
    return (time.thread_time_ns() - begun) / calls


def at_depth(depth: int, run: Callable[[], float]) -> float:
    """Call `run` with about `depth` Python frames below the module's."""
    return run() if depth <= 0 else at_depth(depth - 1, run)


def measure(depth: int, requires_grad: bool, rounds: int) -> dict[str, list[float]]:
    left = torch.ones(8, requires_grad=requires_grad)
    right = torch.ones(8)

    def mode(observer):
        def run() -> float:
            with observer():
                return at_depth(depth - FIXED_FRAMES, lambda: loop(left, right))

        return run

    with quiet_descriptors():
        return interleave({name: mode(make) for name, make in OBSERVERS.items()}, rounds)


def at_the_end(rounds: int) -> dict[str, float]:
    """What leaving an observer takes for each event it has seen, ns of processor time.

    The slope between two numbers of events, so that the fixed cost of leaving is in neither.
    """
    left = torch.ones(8, requires_grad=True)
    right = torch.ones(8)

    def mode(observer, calls: int):
        def run() -> float:
            context = observer()
            context.__enter__()
            loop(left, right, calls)
            begun = time.process_time_ns()
            context.__exit__(None, None, None)
            return float(time.process_time_ns() - begun)

        return run

    modes = {
        f"{name}, {calls}": mode(make, calls)
        for name, make in OBSERVERS.items()
        for calls in (CALLS, MORE_CALLS)
        if name != "TorchDispatchMode"
    }
    with quiet_descriptors():
        figures = interleave(modes, rounds)
    return {
        name: added(figures, f"{name}, {MORE_CALLS}", f"{name}, {CALLS}") / (MORE_CALLS - CALLS)
        for name in OBSERVERS
        if name != "TorchDispatchMode"
    }


def table(rounds: int = ROUNDS) -> Table:
    torch.set_num_threads(1)
    rows = []
    ends = at_the_end(max(rounds // 3, 3))
    for depth in DEPTHS:
        figures = measure(depth, requires_grad=True, rounds=rounds)
        empty = added(figures, "empty observer")
        plain = added(figures, "torch.profiler")
        for name in OBSERVERS:
            if name == "off":
                continue
            extra = added(figures, name)
            end = max(ends.get(name, 0.0), 0.0)
            rows.append([
                str(depth),
                name,
                f"{extra:.0f}",
                f"{extra / empty:.2f}",
                f"{extra / plain:.2f}",
                f"{end:.0f}",
                f"{(extra + end) / (plain + ends['torch.profiler']):.2f}",
            ])
    return Table(
        "Cost of one operator event",
        [
            "Python depth",
            "observer",
            "ns added",
            "of an empty observer",
            "of torch.profiler",
            "ns at the end",
            "of torch.profiler, end included",
        ],
        rows,
        [
            f"`torch.add` of 8 elements that require grad, {CALLS} calls a round, {rounds} rounds, "
            "median of the differences within a round, thread CPU time. At the end: processor time "
            "of leaving the observer, for each event it has seen. Operators only: without following "
            "memory and without CPU samples, which are on by default. Design, for operators: at "
            f"most 1.8 of an empty observer, at most 0.5 of torch.profiler. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table().markdown())
