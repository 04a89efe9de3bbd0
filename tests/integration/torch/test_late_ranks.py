"""Real ranks on gloo, one of them planted late: who is late and where, without a common clock."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.communication import by_operation
from deepcontext.profiler.summaries.late_ranks import LateRanks, by_lateness
from tests.integration.process_tree import run_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    Record = Callable[..., Profile]
    Run = Callable[..., LateRanks]

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

    case, kind = sys.argv[1:]
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

    def passed(x):
        return Late.apply(x)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)

        def forward(self, x):
            return self.last(passed(torch.relu(self.first(x))))

    def load(step):
        late = {
            "loader": rank == world - 1,
            "host": rank < world // 2,
            "rotating": rank == step % world,
            "rare": rank == 1 and step % 25 == 24,
        }
        if late.get(case, False):
            time.sleep(0.4 if case == "rare" else 0.04)
        if case == "compute" and rank == 2:
            for _ in range(10):
                torch.mm(large, large)
        return torch.randn(4, 64)

    large = torch.randn(512, 512)

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return 30

        def __getitem__(self, index):
            time.sleep(0.04 if rank == world - 1 else 0)
            return torch.randn(64)

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

    def trained():
        net = Net()
        if kind == "fsdp":
            from torch.distributed.fsdp import fully_shard

            fully_shard(net.first)
            fully_shard(net)
        else:
            net = DistributedDataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

        def step(x):
            net(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    def by_hand():
        net = Net()

        def step(x):
            net(x).sum().backward()
            for parameter in net.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad = None

        return step

    def meshed():
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("data", "model"))
        data, model = mesh.get_group("data"), mesh.get_group("model")
        weight = torch.randn(64, 64, requires_grad=True)

        def step(x):
            passed(x @ weight).relu().sum().backward()
            dist.all_reduce(weight.grad, group=model)
            dist.all_reduce(weight.grad, group=data)
            weight.grad = None

        return step

    def exchanged():
        x = torch.ones(2_000_000)
        for _ in range(40):
            work = dist.all_reduce(x, async_op=True)
            while case == "hidden" and not work.is_completed():
                sum(range(1000))
            work.wait()

    if kind == "others":
        others()
    elif kind == "exchanged":
        exchanged()
    else:
        step = {"mesh": meshed, "plain": by_hand}.get(kind, trained)()
        if case == "data":
            for x in torch.utils.data.DataLoader(Samples(), batch_size=1):
                step(x)
        else:
            for number in range(30 if case in {"loader", "compute"} else 100):
                step(load(number))
        dist.barrier()
    dist.destroy_process_group()
"""


@pytest.fixture
def record(script: Any) -> Record:
    """Return a function that runs a case on some ranks, and returns the profile of all."""

    def record(case: str, ranks: int, kind: str = "ddp") -> Profile:
        script.path.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
        launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        profile = ["deepcontext", "profile", "-q", script.path.name, case, kind]
        command = [sys.executable, "-m", *launcher, "-m", *profile]
        run_tree(command, cwd=script.folder, timeout_s=240)
        files = run_directory.profiles(script.folder / "program.dcrun")
        return merge({str(path): Profile.load(path) for path in files})

    return record


@pytest.fixture
def run(record: Record) -> Run:
    """Return a function that runs a case on some ranks, and says who was late."""

    def run(case: str, ranks: int, kind: str = "ddp") -> LateRanks:
        found = by_lateness(record(case, ranks, kind))
        assert found is not None
        return found

    return run


def caused_ms(found: LateRanks) -> list[float]:
    assert not found.reason
    return [row.caused_ns / MS for row in found.rows]


@pytest.mark.long
def test_the_late_one_of_two_ranks_is_named(record: Record) -> None:
    profile = record("loader", 2)
    found = by_lateness(profile)
    assert found
    early, late = found.rows
    assert found.compared == found.collectives >= 30
    assert late.caused_ns >= 600 * MS  # of 1,200 planted; a busy machine delays the other as well
    assert late.caused_ns > 2 * early.caused_ns
    assert early.waiting_ns >= 600 * MS
    assert early.total_ns >= early.waiting_ns
    # In backward(), by a lock.
    assert account(profile).of(Cause.COLLECTIVES) >= 0.6 * early.waiting_ns


@pytest.mark.processes
def test_each_call_has_its_work_and_rooted_collectives_are_left_out(run: Run) -> None:
    found = run("all", 2, "others")
    assert not found.reason
    assert found.compared == found.collectives == 8


@pytest.mark.processes
@pytest.mark.skipif(
    not hasattr(torch._C, "_distributed_c10d")
    or not hasattr(torch._C._distributed_c10d, "_dump_fr_trace"),
    reason="this torch has no flight recorder of gloo",
)
def test_sizes_are_those_of_the_tensors(record: Record) -> None:
    found = {
        (row.operation, row.size_bytes): row.calls
        for row in by_operation(record("all", 2, "others"))
    }
    assert found == {
        ("allreduce", 12): 3,
        ("allgather_base", 32): 1,
        ("allgather", 32): 1,
        ("alltoall_base", 32): 1,
        ("reduce_scatter_base", 32): 1,
        ("barrier", 0): 1,
    }


@pytest.mark.processes
def test_what_is_waited_for_is_exposed_and_the_rest_is_hidden(record: Record) -> None:
    def share(case: str) -> float:
        (row,) = by_operation(record(case, 2, "exchanged"))[:1]
        assert row.operation == "allreduce"
        return row.exposed_share

    waited, hidden = share("waited"), share("hidden")
    assert waited > 0.6
    assert 0 <= hidden < 0.3


@pytest.mark.processes
def test_a_call_of_several_works_is_told(run: Run) -> None:
    assert "could not be matched" in run("lists", 2, "others").reason


@pytest.mark.processes
def test_groups_of_a_mesh_are_told_apart(run: Run) -> None:
    """Also: who is late in its column because it waited in its row has cost nobody anything."""
    found = run("loader", 4, "mesh")
    assert (found.groups, found.groups_left_out, found.collectives) == (5, 0, 1 + 4 * 30)
    caused = caused_ms(found)
    assert caused[3] >= 900
    assert max(caused[:3]) < caused[3] / 3


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
@pytest.mark.parametrize("kind", ["ddp", "fsdp", "mesh", "plain"])
@pytest.mark.parametrize(
    ("case", "ranks", "doing", "line"),
    [
        ("loader", {3}, "waiting", "time.sleep(0.4 if"),
        ("host", {0, 1}, "waiting", "time.sleep(0.4 if"),
        ("backward", {1}, "waiting in an operator", "Late.apply"),
        ("rare", {1}, "waiting", "time.sleep(0.4 if"),
        ("rotating", {-1}, "waiting", "time.sleep(0.4 if"),
        ("compute", {2}, "computing", "torch.mm(large, large)"),
        ("data", {3}, "loading data", "time.sleep(0.04 if rank == world"),
    ],
)
def test_findings_name_the_late_rank_and_its_line_once(
    record: Record, case: str, ranks: set[int], doing: str, line: str, kind: str
) -> None:
    found = run_analyzers(record(case, 4, kind), only=["straggler", "rank_imbalance"])
    assert {finding.evidence.get("rank", -1) for finding in found} == ranks, found
    number = 1 + next(n for n, text in enumerate(_lines()) if line in text)
    where = f", {doing} at program.py:{number} "
    assert all(where in finding.title for finding in found), [each.title for each in found]
    assert len(found) == len(ranks)


def _lines() -> list[str]:
    return textwrap.dedent(PROGRAM).splitlines()


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["ddp", "fsdp", "mesh", "plain"])
def test_without_a_late_rank_none_is_above_an_even_share(record: Record, kind: str) -> None:
    """Other programs delay a rank at times, not the same one in each of four runs."""
    shares = []
    for _ in range(4):
        profile = record("none", 4, kind)
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
