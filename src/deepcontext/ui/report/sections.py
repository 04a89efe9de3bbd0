"""The sections of a report, in reading order: the only list of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from deepcontext.ui.report import jax_sections, memory, path_view, phases
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.sections import cpu, gpu, groups, jax, ranks, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.table import Table
    from deepcontext.ui.sections.view import View

    Printer = Callable[[TextLayout, View], None]


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the report.

    Attributes:
        name: what the last line of the overview calls it.
        rank: where sections do not all fit, the lowest rank gets room first.
        more_rows: of the overview: number of rows to add to those of other sections.
        print_it: prints it, or nothing where a profile has none.
        print_full: the same in the full report, where it differs.
        is_of_account: the account of elapsed time, printed first, has what it would show of it.
    """

    name: str
    rank: int
    more_rows: int
    print_it: Printer
    print_full: Printer | None = None
    is_of_account: bool = False


def _table(make: Callable[[View], Table | None]) -> Printer:
    return lambda layout, view: print_table(layout, make(view))


def _tables(*makes: Callable[[View], Iterable[Table | None]]) -> Printer:
    def print_all(layout: TextLayout, view: View) -> None:
        for make in makes:
            for table in make(view):
                print_table(layout, table)

    return print_all


SECTIONS: Final = (
    Section("packages", 4, -1, _table(cpu.packages)),
    Section("jitted functions", 2, -1, _table(jax.functions)),
    Section("device time of JAX", 3, -1, jax_sections.print_device_lines),
    Section("operations of JAX", 7, -1, jax_sections.print_operations),
    Section("recompilations", 5, -1, jax_sections.print_recompilations),
    Section("waits and copies of JAX", 6, -1, _table(jax.transfers)),
    Section("call paths by device time", 17, -1, jax_sections.print_device_paths),
    Section("GPU", 8, 0, _tables(groups.of_gpu)),
    Section("NCCL", 20, -2, _table(gpu.nccl)),
    Section("torch.compile", 9, -4, _table(gpu.compiled)),
    Section(
        "floating-point operations",
        10,
        -3,
        _tables(lambda view: work.arithmetic(view)[:1]),
        _tables(work.arithmetic, work.efficiency),
    ),
    Section(
        "phases",
        18,
        0,
        lambda layout, view: phases.print_phase_bar(layout, view, "Phases"),
        phases.print_phases,
        is_of_account=True,
    ),
    Section("ranks", 11, -1, _tables(ranks.tables)),
    Section("source lines", 1, 2, _table(groups.lines), is_of_account=True),
    Section("operators", 12, 0, _table(groups.operators)),
    Section(
        "modules",
        15,
        -2,
        _table(groups.modules),
        _tables(lambda view: (groups.modules(view), groups.scopes(view))),
    ),
    Section(
        "time between operators",
        19,
        -2,
        _table(cpu.between),
        _tables(lambda view: (cpu.threads(view), cpu.between(view))),
        is_of_account=True,
    ),
    Section("counters", 21, -1, _table(cpu.counters)),
    Section("call paths", 13, -2, path_view.print_paths),
    Section(
        "memory",
        14,
        -2,
        memory.print_memory,
        print_full=partial(memory.print_memory, only_leaks=False),
    ),
    Section(
        "memory of JAX",
        16,
        -2,
        _tables(lambda view: (jax.arrays(view.run), jax.programs(view.run))),
    ),
)
