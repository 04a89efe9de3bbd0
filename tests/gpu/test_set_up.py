"""The way to a table, shown without a GPU: a session against the fakes, with what run.sh has built.

Runs where DEEPCONTEXT_FAKES names the folder of the compiled fakes (`run.sh PYTHON fakes` compiles them).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Bench

FAKES = os.environ.get("DEEPCONTEXT_FAKES", "")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not FAKES, reason="no $DEEPCONTEXT_FAKES")]
SOURCES = Path(__file__).resolve().parents[1] / "fakes"
sys.path.insert(0, str(SOURCES))


def test_a_session_against_the_fakes(bench: Bench) -> None:
    outcome = bench.run(
        f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(SOURCES)!r})
        import kit
        gpu = kit.FakeGpu(Path({FAKES!r}), kit.CUPTI, initialize=False)
        gpu.initialize()
        def launch():
            gpu.launch("k", us=10, count=100)
        launch()
        gpu.deliver()
        """
    )
    bench.row("fakes: kernels below their line", str(outcome.under("launch")), "100")
    assert outcome.status == "ran", outcome.reason
    assert outcome.under("launch") == {"k": 100}


def test_a_package_has_what_it_needs_beside_it() -> None:
    import deepcontext

    folder = Path(deepcontext.__file__).parent
    assert list(folder.glob("_native*.so"))
    assert (folder / "libdeepcontext_injection.so").exists()
