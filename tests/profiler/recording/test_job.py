"""What the ranks of one job have in common, whichever launcher started them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from deepcontext.profiler.recording.launch.job import job_identity
from deepcontext.profiler.recording.rank import Rank

IDENTITY = """
import os
from deepcontext.profiler.recording.launch.job import job_identity
from deepcontext.profiler.recording.rank import current_rank
print(job_identity(current_rank(), os.environ))
"""


@pytest.mark.parametrize(
    ("source", "variables", "identity"),
    [
        (
            "RANK",
            {"TORCHELASTIC_ERROR_FILE": "/tmp/x/none_1/attempt_2/0/error.json"},
            "/tmp/x/none_1",
        ),
        ("SLURM_PROCID", {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"}, "slurm 7.1"),
        ("OMPI_COMM_WORLD_RANK", {"PMIX_NAMESPACE": "prterun-1@1"}, "PMIX_NAMESPACE prterun-1@1"),
    ],
)
def test_a_launcher_that_names_the_job(
    source: str, variables: dict[str, str], identity: str
) -> None:
    assert job_identity(Rank(0, 2, source), variables) == identity


def test_a_launcher_that_names_no_job_is_identified_by_its_process() -> None:
    identities = set()
    for rank, shell in ((0, ()), (1, ("/bin/sh", "-c", '"$0" "$@"; true'))):
        done = subprocess.run(
            [*shell, sys.executable, "-c", IDENTITY],
            env={**os.environ, "PMI_RANK": str(rank), "PMI_SIZE": "2"},
            capture_output=True,
            text=True,
            check=True,
        )
        identities.add(done.stdout.strip())
    (identity,) = identities
    assert identity.startswith(f"process {os.getpid()} ")
