"""The size of the one-file page of real programs, against the size of their profiles."""

from __future__ import annotations

import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.ui.web.one_file import make_page
from deepcontext.ui.web.open_profiles import OpenProfiles

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = Path(__file__).parents[2] / "examples"
# Script, style and frame of the page, and its data in base64.
PAGE_BYTES, PROFILE_FACTOR = 150_000, 1.4
MODULES = 120
# Text that does not compress: each line of a library costs the page its length.
MODULE = """\
import time
{lines}
time.sleep(0.008)
{lines_after}
"""
PROGRAM = """\
import sys, time
sys.path.insert(0, {folder!r})
for number in range({modules}):
    __import__(f"large.part_{{number}}")


def work():
    return sum(range(1_000))


stop = time.perf_counter() + 0.5
while time.perf_counter() < stop:
    work()
"""


def recorded(folder: Path, command: Sequence[str]) -> Path:
    """Run a program under the profiler; return its profile."""
    path = folder / "run.dcprof"
    profile = [sys.executable, "-m", "deepcontext", "profile", "-q", "-o", str(path), *command]
    subprocess.run(profile, check=True, capture_output=True, cwd=folder)
    return path


def importing_program(folder: Path) -> Path:
    """Write a program that imports much more than it uses."""
    library = folder / "site-packages" / "large"
    library.mkdir(parents=True)
    numbers = random.Random(1)
    for number in range(MODULES):
        lines, lines_after = (
            "\n".join(f"_{at} = 0x{numbers.getrandbits(1200):x}" for at in range(5)) for _ in "ab"
        )
        text = MODULE.format(lines=lines, lines_after=lines_after)
        (library / f"part_{number}.py").write_text(text, encoding="utf-8")
    script = folder / "program.py"
    text = PROGRAM.format(folder=str(library.parent), modules=MODULES)
    script.write_text(text, encoding="utf-8")
    return script


def check_size(path: Path) -> None:
    """Check the size of the page of a profile."""
    page = make_page(OpenProfiles.open([path]))
    assert page.size_bytes <= PAGE_BYTES + PROFILE_FACTOR * path.stat().st_size


def test_text_of_imported_files_does_not_make_a_page_large(tmp_path: Path) -> None:
    path = recorded(tmp_path, [str(importing_program(tmp_path))])
    named = OpenProfiles.open([path]).get(0).profile.frames.strings
    assert sum("large/part_" in name for name in named) > MODULES / 6  # the imports were sampled
    check_size(path)


@pytest.mark.long
def test_the_page_of_an_example_is_little_larger_than_its_profile(tmp_path: Path) -> None:
    """That of JAX is in tests/integration/jax/test_example.py."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    check_size(recorded(tmp_path, [str(EXAMPLES / "torch_transformer.py"), "--steps", "2"]))
