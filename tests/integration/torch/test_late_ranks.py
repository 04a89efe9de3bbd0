"""Real ranks on gloo, one of them planted late: who is late, without a common clock."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.merging import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.late_ranks import LateRanks, by_lateness

if TYPE_CHECKING:
    from collections.abc import Callable

    Record = Callable[[str, int], Profile]
    Run = Callable[[str, int], LateRanks]

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no torch.distributed"
)

MS = 1_000_000

# All kinds of collectives that are compared, and some that are not.
PROGRAM = """
    import sys, time
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    case = sys.argv[1]
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)

    class Late(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            if case == "backward" and rank == 1:
                time.sleep(0.04)
            return gradient

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)

        def forward(self, x):
            return self.last(Late.apply(torch.relu(self.first(x))))

    def load(step):
        late = {
            "loader": rank == world - 1,
            "host": rank < world // 2,
            "rotating": rank == step % world,
            "rare": rank == 1 and step % 25 == 24,
        }
        if late.get(case, False):
            time.sleep(0.4 if case == "rare" else 0.04)
        return torch.randn(4, 64)

    def others():
        x = torch.ones(4 * world)
        dist.broadcast(x, 0)
        dist.reduce(x, 0)
        dist.all_gather_into_tensor(torch.empty(4 * world), torch.ones(4))
        dist.all_gather([torch.empty(4) for _ in range(world)], torch.ones(4))
        dist.all_to_all_single(torch.empty(4 * world), x)
        dist.reduce_scatter_tensor(torch.empty(4), x)
        if case == "lists":
            dist.reduce_scatter(torch.empty(4), [torch.ones(4) for _ in range(world)])
        works = [dist.all_reduce(torch.ones(3), async_op=True) for _ in range(3)]
        for work in works:
            work.wait()
        if rank == 0:
            dist.send(x, 1)
        elif rank == 1:
            dist.recv(x, 0)
        dist.barrier()

    if case == "groups":
        group = dist.new_group(list(range(world)))
        dist.all_reduce(torch.ones(3), group=group)
    if case in {"others", "lists"}:
        others()
    else:
        net = DistributedDataParallel(Net())
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        for step in range(30 if case == "loader" else 100):
            net(load(step)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        dist.barrier()
    dist.destroy_process_group()
"""


@pytest.fixture
def record(script: Any) -> Record:
    """Return a function that runs a case on some ranks, and returns the profile of all."""

    def record(case: str, ranks: int) -> Profile:
        script.path.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
        launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        profile = ["deepcontext", "profile", "-q", script.path.name, case]
        subprocess.run(
            [sys.executable, "-m", *launcher, "-m", *profile],
            cwd=script.folder,
            capture_output=True,
            check=True,
            timeout=240,
        )
        files = run_directory.profiles(script.folder / "program.dcrun")
        return merge({str(path): Profile.load(path) for path in files})

    return record


@pytest.fixture
def run(record: Record) -> Run:
    """Return a function that runs a case on some ranks, and says who was late."""

    def run(case: str, ranks: int) -> LateRanks:
        found = by_lateness(record(case, ranks))
        assert found is not None
        return found

    return run


def caused_ms(found: LateRanks) -> list[float]:
    assert not found.reason
    return [row.caused_ns / MS for row in found.rows]


def test_the_late_one_of_two_ranks_is_named(run: Run) -> None:
    found = run("loader", 2)
    early, late = found.rows
    assert found.compared == found.collectives >= 30
    assert late.caused_ns >= 900 * MS
    assert late.caused_ns > 2 * early.caused_ns
    assert early.waiting_ns >= 900 * MS
    assert early.total_ns >= early.waiting_ns


@pytest.mark.processes
def test_each_call_has_its_work_and_rooted_collectives_are_left_out(run: Run) -> None:
    found = run("others", 2)
    assert not found.reason
    assert found.compared == found.collectives == 8


@pytest.mark.processes
def test_a_call_of_several_works_is_told(run: Run) -> None:
    assert "could not be matched" in run("lists", 2).reason


@pytest.mark.processes
def test_several_groups_are_told_and_not_mixed_up(run: Run) -> None:
    found = run("groups", 2)
    assert "several process groups" in found.reason
    assert not found.rows


@pytest.mark.processes
@pytest.mark.parametrize(("case", "late", "least_ms"), [("loader", 3, 900), ("backward", 1, 3_000)])
def test_the_late_one_of_four_ranks_is_named(run: Run, case: str, late: int, least_ms: int) -> None:
    caused = caused_ms(run(case, 4))
    assert max(caused) == caused[late] >= least_ms


@pytest.mark.processes
def test_ranks_that_are_late_in_turn_have_even_shares(run: Run) -> None:
    caused = caused_ms(run("rotating", 4))
    assert min(caused) >= 700  # each 25 times 40 ms; sums of waiting would be alike without this


@pytest.mark.processes
def test_a_rank_that_is_rarely_late_has_the_longest_delay(run: Run) -> None:
    found = run("rare", 4)
    assert max(found.rows, key=lambda row: row.longest_ns).rank == 1
    assert found.rows[1].longest_ns >= 300 * MS
    assert found.rows[1].caused_ns >= 1_200 * MS


@pytest.mark.processes
def test_two_late_ranks_share_what_they_cost(run: Run) -> None:
    found = run("host", 4)
    waiting = [row.waiting_ns for row in found.rows]
    assert max(waiting[:2]) < min(waiting[2:])
    caused = caused_ms(found)
    assert sum(caused[:2]) > 4 * sum(caused[2:])


@pytest.mark.processes
@pytest.mark.parametrize(
    ("case", "rank", "line"),
    [
        ("loader", 3, "time.sleep(0.4 if"),
        ("backward", 1, ""),
        ("rare", 1, ""),
        ("rotating", -1, ""),
    ],
)
def test_findings_name_the_late_rank_once(record: Record, case: str, rank: int, line: str) -> None:
    profile = record(case, 4)
    found = run_analyzers(profile, only=["straggler", "rank_imbalance"])
    named = {finding.evidence.get("rank", -1) for finding in found}
    assert named == {rank}, found
    by_line = [finding for finding in found if finding.id == "rank_imbalance"]
    if line:
        number = 1 + next(n for n, text in enumerate(_lines()) if line in text)
        assert [finding.title for finding in by_line if f":{number} " in finding.title]
    assert len(found) == max(1, len(by_line))


def _lines() -> list[str]:
    return textwrap.dedent(PROGRAM).splitlines()


@pytest.mark.processes
def test_without_a_late_rank_none_is_above_an_even_share(record: Record) -> None:
    """Other programs delay a rank at times, not the same one in each of four runs."""
    shares = []
    for _ in range(4):
        profile = record("none", 4)
        found = by_lateness(profile)
        assert found is not None
        caused = [row.caused_ns for row in found.rows]
        shares.append((max(caused) - sum(caused) / 4) / (profile.run.wall_ns / 4))
        if shares[-1] <= 0.05:
            return
    raise AssertionError(shares)


@pytest.mark.processes
def test_without_a_late_rank_nobody_costs_much(run: Run) -> None:
    caused = caused_ms(run("none", 4))
    assert max(caused) < 3_000  # against 4,000 ms planted elsewhere
