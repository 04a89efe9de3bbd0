"""MPICH from PyPI: ranks that `mpiexec` starts, with and without a shell between."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile

pytestmark = pytest.mark.ecosystem

# As the wheel of mpich installs it.
MPIEXEC = shutil.which("mpiexec.hydra", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.mark.skipif(MPIEXEC is None, reason="needs mpich")
@pytest.mark.parametrize("shell", [(), ("/bin/sh", "-c", 'true; "$0" "$@"; true')])
def test_ranks_of_mpiexec_write_one_run_directory(tmp_path: Path, shell: tuple[str, ...]) -> None:
    assert MPIEXEC is not None
    (tmp_path / "program.py").write_text(
        "import os; os.write(1, f'{os.environ[\"PMI_RANK\"]}\\n'.encode())\n", "utf-8"
    )
    for _ in range(2):
        done = subprocess.run(
            [
                *(MPIEXEC, "-n", "4", *shell),
                *(sys.executable, "-m", "deepcontext", "profile", "--no-report", "program.py"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert sorted(done.stdout.split()) == ["0", "1", "2", "3"]
        assert done.stderr.count("ranks written to 'program.dcrun'") == 1
        runs = [
            Profile.load(path).run for path in run_directory.profiles(tmp_path / "program.dcrun")
        ]
        assert sorted((run.rank, run.ranks, run.rank_source) for run in runs) == [
            (rank, 4, "PMI_RANK") for rank in range(4)
        ]
