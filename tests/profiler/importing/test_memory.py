"""Allocations of a trace are at the operator that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.summaries.memory import memory_use
from tests.profiler.importing import traces

if TYPE_CHECKING:
    from pathlib import Path


def memory(
    at: float, size: int, address: int, total: int, *, device: int | None = 0
) -> dict[str, Any]:
    kind = (
        {"Device Type": 0, "Device Id": -1}
        if device is None
        else {"Device Type": 1, "Device Id": device}
    )
    sizes = {"Bytes": size, "Addr": address, "Total Allocated": total, "Total Reserved": 4096}
    place = {"pid": traces.PID, "tid": traces.MAIN, "ts": at, "s": "t"}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        **place,
        "args": kind | sizes,
    }


def test_peaks_and_volume_by_operator(tmp_path: Path) -> None:
    events = [
        traces.op("aten::linear", 10, 50),
        traces.op("aten::addmm", 20, 20),
        memory(25, 100, 1, 1100),
        memory(45, 200, 2, 1300),  # after addmm, inside linear
        memory(50, -100, 1, 1200),
        memory(70, -200, 2, 1000),
        memory(80, 50, 1, 1050),  # the address again, outside of operators
        memory(90, 7, 1, 7, device=None),
    ]
    profile = load(traces.write(tmp_path / "trace.json", events))

    def of(metric: str) -> dict[str, int]:
        rows = profile.metrics[metric]
        return {
            profile.frame(node).name: total
            for node, total in zip(rows.node.tolist(), rows.total.tolist(), strict=True)
        }

    assert of("gpu_alloc_bytes") == {"aten::addmm": 100, "aten::linear": 200, "MainThread": 50}
    assert of("gpu_peak_bytes") == {"aten::addmm": 100, "aten::linear": 200}
    assert of("gpu_live_bytes") == {"MainThread": 50}
    assert of("alloc_bytes") == {"MainThread": 7}
    use = memory_use(profile)
    assert use is not None
    assert [(pool.name, pool.peak_bytes, pool.allocations) for pool in use.pools] == [
        ("cpu", 7, 1),
        ("cuda:0", 1300, 3),
    ]
    assert use.pools[1].reserved_peak_bytes == 4096
