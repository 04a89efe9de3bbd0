"""How correlation ids of several processes in one file are made distinct."""

from __future__ import annotations

from typing import Final

# Added once for each process; ids have 32 bits.
PROCESS_STEP: Final = 1 << 34
