"""Two processes joined by `jax.distributed`, of which no launcher says which is which.

Where one of them is slow, the other waits in a collective, which must not be taken for slow itself.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.model.merging import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries import collectives

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


# Rank 1 is late in each step, by line 14.
LATE = """
    import sys
    import time
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    address, number = sys.argv[1:]
    jax.distributed.initialize(address, num_processes=2, process_id=int(number))
    mesh = Mesh(np.array(jax.devices()), ("data",))
    spec = PartitionSpec("data")

    def prepare():
        time.sleep(0.06 if number == "1" else 0)

    def step(x):
        return jax.lax.psum(jnp.tanh(x @ x.T).sum(), "data")

    step = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=spec, out_specs=PartitionSpec()))
    x = np.ones((64, 64), np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, spec), x)
    for _ in range(100):
        prepare()
        step(x).block_until_ready()
    jax.distributed.shutdown()
"""


def run_two(folder: Path, program: str, *options: str) -> list[Profile]:
    (folder / "program.py").write_text(textwrap.dedent(program).lstrip("\n"), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [sys.executable, "-m", "deepcontext", "profile", "-q", *options]
    processes = [
        subprocess.Popen(
            [*words, "-o", f"{number}.dcprof", "program.py", address, str(number)], cwd=folder
        )
        for number in range(2)
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    return [Profile.load(folder / f"{number}.dcprof") for number in range(2)]


def test_the_rank_is_the_number_of_the_process(tmp_path: Path) -> None:
    for number, profile in enumerate(run_two(tmp_path, PROGRAM)):
        run = profile.run
        assert (run.rank, run.ranks, run.rank_source) == (number, 2, "jax.distributed")


def test_the_late_rank_is_named_and_not_the_collective_of_the_other(tmp_path: Path) -> None:
    ranks = run_two(tmp_path, LATE, "--jax-exact")
    job = merge({str(number): profile for number, profile in enumerate(ranks)})
    for profile in (*ranks, job):
        assert collectives.collective_nodes(profile).any()
        assert not run_analyzers(profile, only=["hotspot"])
    found = run_analyzers(job, only=["rank_imbalance"])
    assert [finding.evidence["rank"] for finding in found] == [1]
    assert ", waiting at program.py:14 (prepare)" in found[0].title
    fast, late = collectives.by_rank(job)
    assert late.waiting_ns == 0
    assert fast.waiting_ns == fast.total_ns - late.total_ns > late.total_ns
