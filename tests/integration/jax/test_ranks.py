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
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries import collectives
from deepcontext.profiler.summaries.communication import by_operation
from deepcontext.profiler.summaries.late_ranks import by_lateness

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


# A case says who is late in which step, and where. With "runs ahead", only every tenth step is waited for.
# "recorded": by the program itself, after what takes a busy machine long.
STEPS = """
    import sys
    import time
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    address, number, case, *options = sys.argv[1:]
    number = int(number)
    jax.distributed.initialize(address, num_processes=2, process_id=number)
    if "recorded" in options:
        import deepcontext

        deepcontext.start(f"{number}.dcprof", jax_exact="exact" in options)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    spec = PartitionSpec("data")

    def prepare(step):
        late = {
            "loader": number == 1,
            "runs ahead": number == 1,
            "rotating": number == step % 2,
            "rare": number == 1 and step % 25 == 24,
        }
        if late.get(case, False):
            time.sleep(0.4 if case == "rare" else 0.06)

    def slowly(gradient):
        time.sleep(0.06 if number == 1 else 0)
        return gradient

    @jax.custom_vjp
    def model(x):
        return jnp.tanh(x @ x.T).sum()

    def backward(x, gradient):
        if case == "backward":
            gradient = jax.pure_callback(slowly, jax.ShapeDtypeStruct((), x.dtype), gradient)
        return (gradient * x,)

    model.defvjp(lambda x: (model(x), x), backward)

    def step(x):
        return jax.lax.psum(jax.grad(model)(x), "data")

    step = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=spec, out_specs=PartitionSpec()))
    x = np.ones((64, 64), np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, spec), x)
    for number_of_step in range(100):
        prepare(number_of_step)
        y = step(x)
        if case != "runs ahead" or number_of_step % 10 == 9:
            y.block_until_ready()
    if "recorded" in options:
        deepcontext.stop()
    jax.distributed.shutdown()
"""


def line_of(text: str) -> int:
    lines = textwrap.dedent(STEPS).lstrip("\n").splitlines()
    return 1 + next(n for n, line in enumerate(lines) if text in line)


def run_two(
    folder: Path, program: str, *options: str, arguments: tuple[str, ...] = ()
) -> list[Profile]:
    (folder / "program.py").write_text(textwrap.dedent(program).lstrip("\n"), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    profile = ["-m", "deepcontext", "profile", "-q", *options]
    processes = []
    for number in range(2):
        words = [] if "recorded" in arguments else [*profile, "-o", f"{number}.dcprof"]
        words += ["program.py", address, str(number), *arguments]
        processes.append(subprocess.Popen([sys.executable, *words], cwd=folder))
    assert [process.wait(120) for process in processes] == [0, 0]
    return [Profile.load(folder / f"{number}.dcprof") for number in range(2)]


def test_the_rank_is_the_number_of_the_process(tmp_path: Path) -> None:
    for number, profile in enumerate(run_two(tmp_path, PROGRAM)):
        run = profile.run
        assert (run.rank, run.ranks, run.rank_source) == (number, 2, "jax.distributed")


def job(folder: Path, case: str, *options: str) -> Profile:
    ranks = run_two(folder, STEPS, arguments=(case, "recorded", *options))
    return merge({str(number): profile for number, profile in enumerate(ranks)})


@pytest.mark.long
def test_the_late_rank_is_named_and_not_the_collective_of_the_other(tmp_path: Path) -> None:
    ranks = run_two(tmp_path, STEPS, "--jax-exact", arguments=("loader",))
    merged = merge({str(number): profile for number, profile in enumerate(ranks)})
    for profile in (*ranks, merged):
        assert collectives.collective_nodes(profile).any()
        assert not run_analyzers(profile, only=["hotspot"])
    fast, late = collectives.by_rank(merged)
    assert late.waiting_ns == 0
    assert fast.waiting_ns == fast.total_ns - late.total_ns > late.total_ns
    found = by_lateness(merged)
    assert found is not None
    assert (found.reason, found.groups, found.collectives) == ("", 1, 100)
    assert found.compared >= 50
    assert found.rows[1].caused_ns >= 4_000_000_000  # of 6 s planted
    assert found.rows[0].waiting_ns >= 4_000_000_000
    (exchange,) = by_operation(merged)
    assert (exchange.operation, exchange.group, exchange.calls) == ("all-reduce", "jit(step)", 100)
    assert exchange.size_bytes == 64 * 64 * 4
    assert exchange.transfer_ns < exchange.waiting_ns / 2


@pytest.mark.processes
@pytest.mark.parametrize(
    ("case", "options", "rank", "what"),
    [
        ("loader", (), 1, ("waiting", "time.sleep(0.4 if")),
        ("runs ahead", (), 1, ("waiting", "time.sleep(0.4 if")),
        ("rare", ("exact",), 1, ("waiting", "time.sleep(0.4 if")),
        ("backward", (), 1, ("computing", "jax.grad(model)(x)")),
        ("rotating", (), -1, ("waiting", "time.sleep(0.4 if")),
    ],
)
def test_findings_name_the_late_rank_and_its_line_once(
    tmp_path: Path, case: str, options: tuple[str, ...], rank: int, what: tuple[str, str]
) -> None:
    found = run_analyzers(job(tmp_path, case, *options), only=["straggler", "rank_imbalance"])
    assert [finding.evidence.get("rank", -1) for finding in found] == [rank], found
    doing, line = what
    assert f", {doing} at program.py:{line_of(line)} " in found[0].title


@pytest.mark.processes
def test_without_a_late_rank_none_is_above_an_even_share(tmp_path: Path) -> None:
    """Other programs delay a rank at times, not the same one in each of four runs."""
    shares = []
    for _ in range(4):
        profile = job(tmp_path, "none")
        found = by_lateness(profile)
        assert found is not None
        caused = [row.caused_ns for row in found.rows]
        shares.append((max(caused) - sum(caused) / 2) / (profile.run.wall_ns / 2))
        if shares[-1] <= 0.05:
            return
    raise AssertionError(shares)


# XLA writes the groups of sums over shards as a mesh, or as an iota.
SHARDED = """
    import sys
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    address, number = sys.argv[1:]
    jax.distributed.initialize(address, num_processes=2, process_id=int(number))
    mesh = Mesh(np.array(jax.devices()), ("data",))
    x = np.ones((64, 64), np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("data")), x)
    sums = jax.jit(lambda x: (x.T @ x).sum() + x.sum())
    for _ in range(40):
        total = sums(x).block_until_ready()
    assert total == 64 * 128 * 64 + 64 * 128, total
    jax.distributed.shutdown()
"""


def test_collectives_of_a_program_partitioned_by_the_compiler_are_compared(tmp_path: Path) -> None:
    ranks = run_two(tmp_path, SHARDED, "--jax-exact")
    found = by_lateness(merge({str(number): profile for number, profile in enumerate(ranks)}))
    assert found is not None
    assert (found.reason, found.groups, found.groups_left_out) == ("", 1, 0)
    assert found.collectives > 0
    assert found.collectives % 40 == 0
    assert found.compared > 0
    assert [row.rank for row in found.rows] == [0, 1]
