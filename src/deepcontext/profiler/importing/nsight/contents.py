"""From the tables of an export to a profile, and what is said of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.importing.device_events import (
    Said,
    in_batches,
    main_thread,
    thread_names,
)
from deepcontext.profiler.importing.kineto.columns import Columns
from deepcontext.profiler.importing.kineto.contents import contents_from
from deepcontext.profiler.importing.nsight.samples import add_samples
from deepcontext.profiler.importing.nsight.tables import (
    CALLS,
    GRAPHS,
    RANGES,
    SAMPLES,
    THREAD,
    WHOLE_GRAPH,
    Tables,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from deepcontext.profiler.importing.reader import Contents

_LACKS: Final = {
    CALLS: (
        "cuda calls",
        "the file has no CUDA calls (record with --trace=cuda): kernels have no call paths",
    ),
    RANGES: (
        "nvtx",
        "the file has no NVTX ranges (record with --trace=nvtx): paths begin at CUDA calls",
    ),
    SAMPLES: (
        "cpu sampling",
        "the file has no samples of the CPU (record with --sample=process-tree)",
    ),
}


def contents_of(opened: sqlite3.Connection, path: Path) -> Contents:
    """Read an export.

    Raises:
        ProfileDataError: it has no events that are read.
    """
    tables, columns = Tables(opened), Columns()
    columns.read(in_batches(tables.events()))
    if not columns.threads and not len(columns.device):
        raise ProfileDataError(
            f"cannot read '{path}': the database has no CUDA calls, kernels, copies or NVTX ranges; name an "
            "export of Nsight Systems ('nsys export --type sqlite')"
        )
    known = {
        (process, thread): tables.strings.get(name, "")
        for process, thread, name in tables.rows("ThreadNames", THREAD, "nameId")
    }
    columns.thread_names |= thread_names(columns, known)
    product = dict(tables.rows("META_DATA_EXPORT", "name", "value", where="name LIKE 'EXPORT_%'"))
    said = Said(
        f"Nsight Systems {product.get('EXPORT_PRODUCT_VERSION', '')}".strip(),
        "nvidia",
        columns,
        dict(lack for table, lack in _LACKS.items() if table not in tables),
        tuple(_notes(tables)),
        {"schema": str(product.get("EXPORT_SCHEMA_VERSION", "unknown"))},
    )
    names, main = dict(columns.thread_names), main_thread(columns)
    contents = contents_from(columns, _facts(tables), said)
    if SAMPLES in tables:
        add_samples(tables, contents.builder, names, main)
    return contents


def _facts(tables: Tables) -> dict[str, object]:
    """Return what torch.profiler would write beside the events."""
    facts: dict[str, Any] = {"interface": "nsight systems", "cupti_version": ""}
    start = next(tables.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "systemClockNs"), None)
    if start and isinstance(start[0], int):
        # Older exports count from the session's start.
        facts["baseTimeNanoseconds"] = start[0] + tables.origin_ns - (start[1] or 0)
    facts["deviceProperties"] = [
        {"id": number, "name": name or "", "totalGlobalMem": memory or 0, "numSms": count or 0}
        for number, name, memory, count in tables.rows(
            "TARGET_INFO_GPU", "cuDevice", "name", "totalMemory", "smCount"
        )
    ]
    return facts


def _notes(tables: Tables) -> Iterator[str]:
    if GRAPHS in tables:
        yield (
            f"graphs were traced as a whole: their kernels are shown as '{WHOLE_GRAPH}' (record with "
            "--cuda-graph-trace=node)"
        )
