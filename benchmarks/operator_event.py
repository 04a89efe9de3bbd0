"""What one operator event costs: `torch.add` on 8 elements, in loops of several kinds."""

from __future__ import annotations

import functools
import statistics
import threading
import time
from collections.abc import Callable, Iterable

import torch
from observers import OBSERVERS
from paired import (
    Table,
    added,
    interleave,
    lowest_added,
    machine,
    quartiles,
    quiet_descriptors,
)

CALLS = 5000
MORE_CALLS = 25_000
DEPTHS = (3, 11, 41, 100)
THREADS = 16
DOUBLINGS = 14  # 16,384 call paths, 49,000 contexts
ROUNDS = 31
FIXED_FRAMES = 8  # from the module to the loop, without those of `at_depth`
SLOW = "TorchDispatchMode"
# They do not see the threads that a program starts.
OF_ONE_THREAD = ("torch.profiler", "torch.profiler with_stack", "torch.profiler all", SLOW)

Loop = Callable[[], float]


def loop(left: torch.Tensor, right: torch.Tensor, calls: int = CALLS) -> float:
    begun = time.thread_time_ns()
    for _ in range(calls):
        torch.add(left, right)
    return (time.thread_time_ns() - begun) / calls


def at_depth(depth: int, run: Loop) -> float:
    """Call `run` with about `depth` Python frames below the module's."""
    return run() if depth <= 0 else at_depth(depth - 1, run)


def on_threads(left: torch.Tensor, right: torch.Tensor) -> float:
    """Return the mean time of an event on threads that take turns, ns."""
    calls = CALLS * 4 // THREADS
    figures: list[float] = []
    threads = [
        threading.Thread(target=lambda: figures.append(loop(left, right, calls)))
        for _ in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.fmean(figures)


def on_many_paths(left: torch.Tensor, right: torch.Tensor, passes: int) -> float:
    """Return the time of an event in the last pass over 2 ** DOUBLINGS call paths, ns."""

    def down(depth: int) -> None:
        if depth:
            down(depth - 1)
            down(depth - 1)
        else:
            torch.add(left, right)

    spent = 0
    for _ in range(passes):
        begun = time.thread_time_ns()
        down(DOUBLINGS)
        spent = time.thread_time_ns() - begun
    return spent / 2**DOUBLINGS


def through_generators(left: torch.Tensor, right: torch.Tensor) -> float:
    """Return the time of an event below a chain of generators and decorated functions, ns."""

    def decorated(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            return function(*arguments)

        return wrapper

    def batches(count):
        yield from ((left, right) for _ in range(count))

    @decorated
    @decorated
    def work(one, other):
        torch.add(one, other)

    begun = time.thread_time_ns()
    for one, other in batches(CALLS):
        work(one, other)
    return (time.thread_time_ns() - begun) / CALLS


def programs() -> dict[str, Loop]:
    """Return the loops by label. An event has a path of its own only where the label says so."""
    left, right = torch.ones(8, requires_grad=True), torch.ones(8)
    one_line = {
        f"depth {depth}": lambda depth=depth: at_depth(
            depth - FIXED_FRAMES, lambda: loop(left, right)
        )
        for depth in DEPTHS
    }
    return {
        **one_line,
        f"{THREADS} threads": lambda: on_threads(left, right),
        f"{2**DOUBLINGS:,} new paths": lambda: on_many_paths(left, right, 1),
        f"{2**DOUBLINGS:,} paths, again": lambda: on_many_paths(left, right, 4),
        "generators, decorators": lambda: through_generators(left, right),
    }


def measure(run: Loop, rounds: int, observers: Iterable[str]) -> dict[str, list[float]]:
    def mode(observer) -> Loop:
        def observed() -> float:
            with observer():
                return run()

        return observed

    with quiet_descriptors():
        return interleave({name: mode(OBSERVERS[name]) for name in observers}, rounds)


def at_the_end(rounds: int) -> dict[str, float]:
    """What leaving an observer takes for each event it has seen, ns of processor time.

    The slope between two numbers of events, so that the fixed cost of leaving is in neither.
    """
    left = torch.ones(8, requires_grad=True)
    right = torch.ones(8)

    def mode(observer, calls: int) -> Loop:
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
        if name != SLOW
    }
    with quiet_descriptors():
        figures = interleave(modes, rounds)
    return {
        name: added(figures, f"{name}, {MORE_CALLS}", f"{name}, {CALLS}") / (MORE_CALLS - CALLS)
        for name in OBSERVERS
        if name != SLOW
    }


def event_table(rounds: int) -> Table:
    rows = []
    for label, run in programs().items():
        is_threaded = label.endswith("threads")
        observers = [name for name in OBSERVERS if not (is_threaded and name in OF_ONE_THREAD)]
        figures = measure(run, rounds, observers)
        bases = [
            lowest_added(figures, name) if name in figures else None
            for name in ("outside a recording", "empty observer", "torch.profiler")
        ]
        for name in observers[1:]:
            extra = lowest_added(figures, name)
            lower, upper = quartiles(figures, name)
            is_noise = name == "off, again"
            rows.append([
                label,
                name,
                f"{extra:.0f}",
                f"{lower:.0f} to {upper:.0f}",
                *("" if is_noise or not base else f"{extra / base:.2f}" for base in bases),
            ])
    return Table(
        "Cost of one operator event",
        [
            "program",
            "observer",
            "ns added",
            "middle half of the rounds",
            "of one outside a recording",
            "of an empty observer",
            "of torch.profiler",
        ],
        rows,
        [
            f"`torch.add` of 8 elements that require grad, {CALLS} calls a round, {rounds} interleaved "
            "rounds, thread CPU time; torch.profiler does not see other threads. Added: lowest decile of "
            "the rounds less the lowest decile of those without an observer; beside it between what values "
            "half of the differences within a round lie. *off, again* is the noise. *Outside a "
            "recording* is deepcontext's own observer while nothing is recorded (`ways_in` has the floor: "
            "callbacks that return at once); the empty observer is "
            "PyTorch's, which asks for the inputs of operators. Operators only: without following "
            "memory and without CPU samples, which are on by default. Goals at depth 11: operators "
            "only at most 1.4 of an empty observer and 0.45 of torch.profiler, the defaults 1.7 and "
            f"0.55; not to be left: 1.8 and 0.5. {machine()}.",
        ],
    )


def end_table(rounds: int) -> Table:
    ends = at_the_end(rounds)
    plain = ends["torch.profiler"]
    return Table(
        "Cost of one operator event when an observer leaves",
        ["observer", "ns an event", "of torch.profiler"],
        [
            [name, f"{max(end, 0.0):.0f}", f"{max(end, 0.0) / plain:.2f}"]
            for name, end in ends.items()
            if name not in {"off", "off, again"}
        ],
        [
            f"Processor time of leaving the observer after {MORE_CALLS:,} events less that after "
            f"{CALLS:,}, by event; {rounds} interleaved rounds, median of the differences within a "
            f"round. {machine()}.",
        ],
    )


def tables(rounds: int = ROUNDS) -> list[Table]:
    torch.set_num_threads(1)
    return [event_table(rounds), end_table(max(rounds // 3, 3))]


if __name__ == "__main__":
    print("\n".join(each.markdown() for each in tables()))
