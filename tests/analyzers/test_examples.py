"""No analyzer fires on the example programs, which are healthy.

Shares of times change with what else the machine does: one silent recording of three is enough.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deepcontext
from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.model.profile import Profile

EXAMPLES = Path(__file__).parents[2] / "examples"
_RECORDINGS = 3
_PACKAGE = Path(str(deepcontext.__file__)).parents[1]


@pytest.mark.cases
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "words",
    [
        ["torch_mlp.py"],
        ["torch_convnet.py"],
        ["torch_transformer.py", "--steps", "15"],
        ["torch_compile.py"],
        ["jax_transformer.py"],
    ],
    ids=lambda words: words[0],
)
def test_nothing_is_found_in_a_healthy_program(tmp_path: Path, words: list[str]) -> None:
    framework = words[0].partition("_")[0]
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"needs {framework}")
    titles = []
    for attempt in range(_RECORDINGS):
        profile = _profiled(tmp_path / str(attempt), words)
        titles = [finding.title for finding in run_analyzers(profile)]
        if not titles:
            return
    pytest.fail("\n".join(titles))


def _profiled(folder: Path, words: list[str]) -> Profile:
    folder.mkdir()
    output = folder / "out.dcprof"
    command = ["profile", "--no-report", "-o", str(output), str(EXAMPLES / words[0]), *words[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", *command],
        # An empty cache: the first call of a compiled region compiles its backward, too.
        env={**os.environ, "PYTHONPATH": str(_PACKAGE), "TORCHINDUCTOR_CACHE_DIR": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Profile.load(output)
