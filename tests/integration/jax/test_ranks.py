"""Two processes joined by `jax.distributed`, of which no launcher says which is which."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("jax")

PROGRAM = """
    import sys
    import jax

    address, number = sys.argv[1:]
    jax.distributed.initialize(address, num_processes=2, process_id=int(number))
    jax.distributed.shutdown()
"""


def test_the_rank_is_the_number_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [sys.executable, "-m", "deepcontext", "profile", "-q"]
    processes = [
        subprocess.Popen(
            [*words, "-o", f"{number}.dcprof", "program.py", address, str(number)], cwd=tmp_path
        )
        for number in range(2)
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    for number in range(2):
        run = Profile.load(tmp_path / f"{number}.dcprof").run
        assert (run.rank, run.ranks, run.rank_source) == (number, 2, "jax.distributed")
