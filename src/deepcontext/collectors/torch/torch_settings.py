"""Settings of PyTorch that a program may change, and types that the processor computes in fast.

Reads figures that torch keeps, and the kernel's list of the processor's features. Starts no device and no
thread of torch.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

SECTION: Final = "torch_settings"
_LAYOUT: Final = 1
# Features of a processor with instructions for products of a type. Source: oneDNN, "Data types": other
# processors convert each element, or have no kernel at all.
_FAST: Final = {
    "bf16": frozenset({"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16", "svebf16"}),
    "f16": frozenset({"avx512_fp16", "amx_fp16", "avx_ne_convert", "asimdhp", "fphp"}),
}


def section() -> bytes:
    """Return the settings at this moment, JSON."""
    torch: Any = sys.modules.get("torch")
    content: dict[str, object] = {"version": _LAYOUT, "cores": len(os.sched_getaffinity(0))}
    try:
        content["threads"] = int(torch.get_num_threads())
    except (AttributeError, RuntimeError):
        content["threads"] = 0
    features = _features()
    if features:
        content["fast_types"] = [name for name, needed in _FAST.items() if needed & features]
    return json.dumps(content).encode()


def _features() -> frozenset[str]:
    """Return the features of the first processor; empty where the kernel does not list them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        name, _, values = line.partition(":")
        if name.strip() in {"flags", "Features"}:
            return frozenset(values.split())
    return frozenset()
