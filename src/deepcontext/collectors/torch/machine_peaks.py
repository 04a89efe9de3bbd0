"""The peaks of the machine that a profile is recorded on, as measured before, and torch's threads.

Measures nothing (`peak_measurement.py`). A profile with shapes keeps them, because it may be read on another
machine, or after this machine has changed.
"""

from __future__ import annotations

import sys
from typing import Any

from deepcontext.profiler.format import peaks


def section() -> bytes:
    """Return the payload of the section `peaks`; without devices where nothing was measured."""
    torch: Any = sys.modules.get("torch")
    try:
        threads = int(torch.get_num_threads())
    except (AttributeError, RuntimeError):
        threads = 0
    model, cores = peaks.this_cpu()
    return peaks.encode_section(
        (each for each in peaks.measured() if each.is_of(model, cores)), threads
    )
