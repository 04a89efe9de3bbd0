"""The eight case studies of the DeepContext paper as pairs, each told at its line.

docs/evaluation.md has what the fixes save.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fault_pairs.judging import misses, verdict
from tests.fault_pairs.pairs import pairs
from tests.fault_pairs.record import record

if TYPE_CHECKING:
    from pathlib import Path

# What the paper saw in kernels is on a simulated GPU; "layout" and "rms_norm" are the same on a CPU.
STUDIES = {
    "DLRM-small: backward of indexing": ("recommendation",),
    "GNN: backward of indexing": ("graph",),
    "U-Net: layout conversions": ("gpu_layout", "layout"),
    "U-Net: more loader workers than cores": ("workers",),
    "Transformer-Big: a loss of small operators": ("label_smoothing",),
    "Llama 3: casts of RMSNorm": ("gpu_stall", "rms_norm"),
    "U-Net: blocks made for 32 threads on 64": ("gpu_warp",),
    "PyTorch against JAX: unfused pointwise operators": ("eager",),
}
CASES = [(study, name) for study, names in STUDIES.items() for name in names]


@pytest.mark.cases
@pytest.mark.parametrize(("study", "name"), CASES, ids=[name for _, name in CASES])
def test_a_case_study_is_told_at_its_line(study: str, name: str, tmp_path: Path) -> None:
    pair = pairs()[name]
    for kind in pair.kinds:
        record(pair, kind, tmp_path)
    found = verdict(pair, tmp_path)
    assert found.told == "yes", f"{study}: {misses([found])}"
