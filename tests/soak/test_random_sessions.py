"""Half an hour of sessions that start and stop at random: `make soak`, and `make sanitize-soak`
under AddressSanitizer and UndefinedBehaviorSanitizer. SOAK_S is another length in seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak
PROGRAM = Path(__file__).with_name("random_sessions.py")


def test_random_sessions_harm_no_program_and_lose_nothing(tmp_path: Path) -> None:
    seconds = float(os.environ.get("SOAK_S", "1800"))
    seed = os.environ.get("SOAK_SEED", str(int.from_bytes(os.urandom(4), "little")))
    words = [sys.executable, "-X", "faulthandler", "-W", "ignore", str(PROGRAM)]
    done = subprocess.run(
        [*words, str(seconds), seed, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + 1200,
    )
    print(done.stdout[-5000:])
    assert done.returncode == 0, f"SOAK_SEED={seed}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["failures"] == []
    assert report["done"]["sessions"] > 0
    assert report["timer_hits"] > 0
