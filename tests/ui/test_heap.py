"""What commands do with memory that they have freed."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

_ROUNDS: Final = """
import resource, sys
from deepcontext.ui.cli.heap import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
import numpy as np
def faults():
    begun = resource.getrusage(resource.RUSAGE_SELF)
    arrays = [np.full(2**20 - 100, 1.0) for _ in range(8)]
    del arrays
    ended = resource.getrusage(resource.RUSAGE_SELF)
    return ended.ru_minflt - begun.ru_minflt
faults()
print(faults())
"""


def test_an_array_gets_the_memory_of_one_that_was_freed() -> None:
    kept, given_back = (
        int(
            subprocess.run(
                [sys.executable, "-c", _ROUNDS, how], capture_output=True, check=True
            ).stdout
        )
        for how in ("kept", "given back")
    )
    assert kept == 0 < given_back
