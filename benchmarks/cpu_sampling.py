"""What sampling at its default rate costs a program that computes, alone and on several threads."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

from paired import Table, interleave, machine, ratio

import deepcontext
from deepcontext import _native
from deepcontext.profiler.format.counter_names import COUNTER_NAMES

ROUNDS = 15
RATES = (0.0, 100.0, 1000.0)


def python_work() -> None:
    """Call depth 20, half a second of plain Python or less."""

    def down(depth: int) -> int:
        return down(depth - 1) + 1 if depth else sum(range(200))

    for _ in range(60_000):
        down(20)


def threaded_work() -> None:
    """The same on 4 threads, which compete for the GIL, beside 30 that wait."""
    over = threading.Event()
    idle = [threading.Thread(target=over.wait) for _ in range(30)]
    busy = [threading.Thread(target=python_work) for _ in range(4)]
    for thread in idle + busy:
        thread.start()
    for thread in busy:
        thread.join()
    over.set()
    for thread in idle:
        thread.join()


def processor_time(work: Callable[[], None], rate: float, counters: tuple[str, ...]) -> float:
    """Processor time of the whole process in ns, the sampler's own thread included."""
    deepcontext.start(cpu_rate=rate, counters=counters)
    try:
        begun = time.process_time_ns()
        work()
        return float(time.process_time_ns() - begun)
    finally:
        deepcontext.stop()


def settings() -> dict[str, tuple[float, tuple[str, ...]]]:
    """Rates and counters by label, the one without samples first; all counters there are here."""
    answers = _native.ask_for_perf_events(COUNTER_NAMES)
    counters = tuple(name for name, error, _ in answers if not error)
    plain = {f"{rate:.0f} Hz": (rate, ()) for rate in RATES}
    with_counters = {
        f"{rate:.0f} Hz, {' and '.join(counters)}": (rate, counters) for rate in RATES[1:]
    }
    return plain | with_counters if counters else plain


def table(rounds: int = ROUNDS) -> Table:
    rows = []
    programs = (("Python, depth 20", python_work), ("4 busy, 30 idle threads", threaded_work))
    off, *others = settings()
    for name, work in programs:
        figures = interleave(
            {
                label: lambda how=how, work=work: processor_time(work, *how)
                for label, how in settings().items()
            },
            rounds,
        )
        time_off = statistics.median(figures[off])
        rows += [
            [f"{name} ({time_off / 1e6:.0f} ms)", label, f"{ratio(figures, label, off):.4f}x"]
            for label in others
        ]
    return Table(
        "CPU sampling",
        ["program", "samples, counters", "processor time against rate 0"],
        rows,
        [
            f"Processor time of the process, the sampler's thread included, {rounds} interleaved "
            f"rounds, median of the ratios within a round. Design: 1.01x at 100 Hz. {machine()}.",
        ],
    )


if __name__ == "__main__":
    print(table().markdown())
