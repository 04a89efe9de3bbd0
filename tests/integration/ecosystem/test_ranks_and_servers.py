"""Jobs whose processes the test tells apart: ranks of jax.distributed, workers of gunicorn."""

from __future__ import annotations

import signal
import time
import urllib.error
import urllib.request
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.integration.ecosystem.jobs import (
    PROFILE,
    all_ended,
    free_port,
    needs,
    profiles,
    recorded,
    run,
    start,
    worked,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [pytest.mark.ecosystem, pytest.mark.timeout(600)]

OPERATOR = "aten::mm"
JAX = """
import pathlib, os, sys
import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

rank, port = int(sys.argv[1]), sys.argv[2]
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=rank)
total = multihost_utils.process_allgather(jnp.ones(4) * (rank + 1)).sum()
pathlib.Path("worked", str(os.getpid())).touch()
if rank == 0:
    print(total, flush=True)
"""
SERVER = """
import torch
from work import work

model = torch.nn.Linear(8, 1)
model(torch.ones(1, 8))

def app(environ, start_response):
    work()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(tuple(model(torch.ones(1, 8)).shape)).encode()]
"""


@needs("jax")
def test_processes_of_jax_distributed_have_their_ranks(tmp_path: Path) -> None:
    port, files = free_port(), {"rank.py": JAX}
    command = ("sh", "-c", f"python rank.py 1 {port} & python rank.py 0 {port} && wait $!")
    plain = run(tmp_path / "plain", command, files)
    status, output, errors = run(tmp_path / "profiled", (*PROFILE, *command), files)
    assert (status, plain[0]) == (0, 0), errors
    # Gloo prints a line in each process, in any order.
    assert sorted(output.splitlines()) == sorted(plain[1].splitlines())
    assert "12.0" in output.splitlines()
    found = profiles(tmp_path / "profiled")
    assert {profile.run.pid for profile in found} == worked(tmp_path / "profiled")
    assert sorted((profile.run.rank, profile.run.ranks) for profile in found) == [(0, 2), (1, 2)]
    assert all(len(profile.query().kind("operator").nodes()) for profile in found)


def answer(port: int) -> str:
    """Return what the server answers, as soon as it does."""
    until = time.monotonic() + 120
    while True:
        try:
            return str(urllib.request.urlopen(f"http://127.0.0.1:{port}/").read().decode())
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def serve(
    folder: Path, profile: Sequence[str], gunicorn: Sequence[str]
) -> tuple[int, str, set[str]]:
    """Return exit status, output and answers of a server that SIGTERM ends."""
    port, tag = free_port(), str(uuid.uuid4())
    write(folder, {"server.py": SERVER})
    words = (*profile, "gunicorn", *gunicorn, "-w", "2", "-b", f"127.0.0.1:{port}", "server:app")
    process = start(folder, words, tag)
    answers = {answer(port) for _ in range(20)}
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert all_ended(tag) == []
    return process.returncode, output, answers


@needs("gunicorn")
@pytest.mark.parametrize("preload", [(), ("--preload",)], ids=["in workers", "preloaded"])
def test_workers_of_gunicorn_have_profiles(tmp_path: Path, preload: tuple[str, ...]) -> None:
    plain = serve(tmp_path / "plain", (), preload)
    assert plain == (0, "", {"(1, 1)"})
    # The workers of gunicorn are children of a bare fork.
    folder = tmp_path / "profiled"
    assert serve(folder, (*PROFILE, "--children", "all"), preload) == plain
    assert worked(folder)
    assert recorded(folder, OPERATOR) >= worked(folder)
