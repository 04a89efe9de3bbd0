"""What views say of the file of another tool that a profile was read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepcontext.profiler.model.trust import TrustReport


def read_from_text(trust: TrustReport) -> str:
    """Return ``'trace.json', a trace of torch.profiler with 56,451 events``; "" for a recorded profile."""
    read = trust.read_from
    if read is None:
        return ""
    details = read.details
    events = details.get("events_read", "")
    count = f" with {events} events" if events else ""
    lines = [each.details.get("lines", "") for each in trust.collectors if "lines" in each.details]
    where = f"; a line is the one {lines[0]}" if lines else ""
    if not details.get("file"):  # joined ranks
        return f"files of other tools, one a rank, joined{where}"
    return f"'{details['file']}', {details.get('format', 'a file of another tool')}{count}{where}"
