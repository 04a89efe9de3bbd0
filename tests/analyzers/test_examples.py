"""No analyzer fires on the example programs, which are healthy."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deepcontext
from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.model.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    Settle = Callable[[Callable[[int], Profile], Callable[[Profile], None]], None]

EXAMPLES = Path(__file__).parents[2] / "examples"
_PACKAGE = Path(str(deepcontext.__file__)).parents[1]


@pytest.mark.timeout(900)
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
def test_nothing_is_found_in_a_healthy_program(
    settle: Settle, tmp_path: Path, words: list[str]
) -> None:
    framework = words[0].partition("_")[0]
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"needs {framework}")

    def is_silent(profile: Profile) -> None:
        assert [finding.title for finding in run_analyzers(profile)] == []

    settle(lambda attempt: _profiled(tmp_path / str(attempt), words), is_silent)


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
