"""What a visit to a machine with a GPU wrote becomes tables of docs/benchmarks.md."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_tables_of_a_visit_name_machine_and_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tests/gpu", "benchmarks"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    results: Any = importlib.import_module("results")
    visit: Any = importlib.import_module("gpu_visit")
    for name in ("results", "gpu_visit", "paired"):
        sys.modules.pop(name)

    assert visit.tables(tmp_path) == []
    written = results.Results(tmp_path / "h200", "overhead")
    written.content["device_and_driver"] = "NVIDIA H200, 580.65"
    written.expect(["test_a", "test_b"])
    written.row("gpt2: deepcontext", "1.02 x plain | more", "for information")
    written.end_test("test_a", "passed", 1.0, "")
    (table,) = visit.tables(tmp_path)
    text = table.markdown()
    assert f"GPU: overhead on NVIDIA H200, 580.65, {written.content['date']}" in text
    assert "| gpt2: deepcontext | 1.02 x plain / more | for information |" in text
    assert "1 passed, 1 not reached" in text
    assert "Not reached: test_b." in text
