"""The part of a report about memory: the peak and its composition, and growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.profiler.summaries import memory as memory_summary
from deepcontext.ui.format import format_bytes, format_count, format_ns, format_share
from deepcontext.ui.report.tables import print_table
from deepcontext.ui.sections import memory as tables

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.memory import MemoryUse, Pool
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.view import View

_ROLE_NAMES: Final = {"optimizer": "optimizer state", "unknown": "unknown"}
_ROLE_STYLES: Final = {
    "parameter": "cyan",
    "gradient": "magenta",
    "optimizer": "yellow",
    "activation": "green",
    "input": "blue",
    "temporary": "red",
    "unknown": "dim",
}
_BAR_WIDTH: Final = 60


def print_memory(layout: TextLayout, view: View, *, only_leaks: bool = True) -> None:
    """Print each memory's peak by role and by line of user code, and the lines that may leak, or grew."""
    view = view.run
    profile = view.profile
    use = memory_summary.memory_use(profile)
    pools = [pool for pool in use.pools if pool.allocations] if use else []
    prefixes = memory_summary.prefixes(profile)
    grown = [tables.growth(view, prefix, only_leaks=only_leaks) for prefix in prefixes]
    if use is None or not (pools or any(table.rows for table in grown)):
        return
    if pools:
        layout.title("Memory", "of tensors; held at the peak, by the allocating line")
    else:
        layout.title("Memory that grew", "held at the ends of steps, by the allocating line")
    for pool in pools:
        _print_pool(layout, pool, use)
    for prefix, growth in zip(prefixes, grown, strict=True):
        print_table(layout, tables.holders(view, prefix))
        print_table(layout, growth)


def _print_pool(layout: TextLayout, pool: Pool, use: MemoryUse) -> None:
    layout.prose(_pool_text(pool, use), hanging=f"{pool.name}: ")
    shares = [
        (role, value / pool.peak_bytes)
        for role, value in pool.peak_role_bytes.items()
        if value and pool.peak_bytes
    ]
    if not shares:  # a trace does not say what memory is for
        return
    shares.sort(key=lambda part: -part[1])
    styled = [(share, _ROLE_STYLES.get(role, "")) for role, share in shares]
    bar = layout.divided_bar(styled, min(_BAR_WIDTH, layout.width - 4))
    layout.line(Text("  ").append_text(bar))
    layout.flow([
        Text(f"{glyph} {_ROLE_NAMES.get(role, role)} {format_share(share)}", style)
        for (role, share), (_, style), glyph in zip(
            shares, styled, layout.glyphs.bars.ljust(len(shares)), strict=False
        )
    ])


def _pool_text(pool: Pool, use: MemoryUse) -> str:
    when = f"after {format_ns(pool.peak_after_ns)}"
    if use.steps and use.step_kind != "call":
        when = f"in step {min(pool.peak_step + 1, use.steps)} of {format_count(use.steps)}, {when}"
    facts = [
        f"{format_bytes(pool.peak_bytes)} at most ({when})",
        f"{format_bytes(pool.live_bytes)} at the end",
        f"{format_bytes(pool.alloc_bytes)} allocated in {format_count(pool.allocations)} pieces",
    ]
    if pool.reserved_peak_bytes:
        facts.insert(1, f"{format_bytes(pool.reserved_peak_bytes)} reserved by the cache")
    return ", ".join(facts)
