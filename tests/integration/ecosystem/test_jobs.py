"""Jobs of several processes that libraries start: every process that works has a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.ecosystem.jobs import PROFILE, needs, recorded, run, worked

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.ecosystem, pytest.mark.timeout(600)]

OPERATOR = "aten::mm"

DDP = """
import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel
from work import work

distributed.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(3):
    loss = model(torch.ones(4, 8) * (distributed.get_rank() + 1)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
work()
distributed.barrier()
if distributed.get_rank() == 0:
    print(f"{loss.item():.4f}", flush=True)
distributed.destroy_process_group()
"""
FSDP2 = """
import torch
import torch.distributed as distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from work import work

distributed.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
fully_shard(model, mesh=init_device_mesh("cpu", (distributed.get_world_size(),)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(3):
    loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
work()
distributed.barrier()
if distributed.get_rank() == 0:
    print(f"{loss.item():.4f}", flush=True)
distributed.destroy_process_group()
"""
LOADER = """
import sys
from torch.utils.data import DataLoader, Dataset
import torch
from work import work

class Images(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        work()
        return torch.full((4,), float(index))

if __name__ == "__main__":
    loader = DataLoader(Images(), batch_size=2, num_workers=2, multiprocessing_context=sys.argv[1])
    for epoch in range(2):
        print(sum(batch.sum().item() for batch in loader))
    work()
"""
POOL = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
from work import work

def square(number):
    work()
    time.sleep(0.1)
    return number * number

if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context(sys.argv[1])) as pool:
        print(list(pool.map(square, range(6))))
    work()
"""
ACCELERATE = """
import torch
from accelerate import Accelerator
from work import work

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = torch.nn.Linear(8, 1, bias=False)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
for step in range(3):
    loss = model(torch.ones(4, 8)).sum()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
work()
accelerator.wait_for_everyone()
accelerator.print(f"{accelerator.num_processes} {loss.item():.4f}", flush=True)
accelerator.end_training()
"""
LIGHTNING = """
import logging, warnings
import lightning
import torch
from work import work

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, index):
        work()
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.ones(16, 8))
    module = Module()
    lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp_spawn", max_epochs=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    ).fit(module, torch.utils.data.DataLoader(data, batch_size=4))
    print(f"{module.layer.weight.sum().item():.4f}")
"""
RAY = """
import os, time
import ray.train
import ray.train.torch
from ray.train import ScalingConfig
import torch

FOLDER = os.getcwd()

def loop():
    os.chdir(FOLDER)
    from work import work
    model = ray.train.torch.prepare_model(torch.nn.Linear(8, 1))
    model(torch.ones(4, 8)).sum().backward()
    # Ray kills its workers, so that their last snapshot is their profile.
    for step in range(150):
        work()
        time.sleep(0.1)

if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.train.torch.TorchTrainer(loop, scaling_config=ScalingConfig(num_workers=2)).fit()
    ray.shutdown()
    print("trained")
"""
TORCHRUN = ("torchrun", "--standalone", "--nproc-per-node", "2")
JOBS = [
    pytest.param((*TORCHRUN, "ddp.py"), DDP, 2, id="torchrun, DDP"),
    pytest.param((*TORCHRUN, "fsdp2.py"), FSDP2, 2, id="torchrun, FSDP2"),
    *(
        pytest.param(("loader.py", method), LOADER, processes, id=f"DataLoader, {method}")
        for method, processes in (("fork", 5), ("spawn", 5), ("forkserver", 5))
    ),
    *(
        pytest.param(("pool.py", method), POOL, 3, id=f"concurrent.futures, {method}")
        for method in ("fork", "spawn", "forkserver")
    ),
    pytest.param(
        ("accelerate", "launch", "--multi_gpu", "--num_processes", "2", "train.py"),
        ACCELERATE,
        2,
        id="accelerate launch",
        marks=needs("accelerate"),
    ),
    pytest.param(("fit.py",), LIGHTNING, 2, id="Lightning, ddp_spawn", marks=needs("lightning")),
    pytest.param(("fit.py",), RAY, 2, id="Ray Train", marks=needs("ray")),
]


@pytest.mark.parametrize(("words", "program", "processes"), JOBS)
def test_every_process_that_works_has_a_profile(
    tmp_path: Path, words: tuple[str, ...], program: str, processes: int
) -> None:
    script = next(word for word in words if word.endswith(".py"))
    files = {script: program}
    command = words if words[0] != script else ("python", *words)
    plain = run(tmp_path / "plain", command, files)
    assert plain[0] == 0, plain[2]
    status, output, errors = run(tmp_path / "profiled", (*PROFILE, *words), files)
    assert (status, output) == plain[:2], errors
    at_work = worked(tmp_path / "profiled")
    assert len(at_work) == processes
    assert recorded(tmp_path / "profiled", OPERATOR) == at_work
