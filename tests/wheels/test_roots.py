"""The wheels on other Debian releases: their glibc, no compiler, no network, nothing but Python.

`tools/make_roots.sh` makes the root folders; `DEEPCONTEXT_ROOTS` names another folder of them. With
`DEEPCONTEXT_ROOTS_TORCH` (as in `torch==2.13.0`), a step of PyTorch with native frames is tried, too: on
x86-64 its wheels have gigabytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.wheels.test_wheels import PROGRAM, TRAINING, WHEELS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.wheels, pytest.mark.timeout(1200)]

CHECKOUT = Path(__file__).parents[2]
ROOTS = Path(os.environ.get("DEEPCONTEXT_ROOTS", CHECKOUT / "build" / "roots"))
# Python's folders are mounted for one command only, so that nothing stays mounted.
ENTER = 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
PYTHONS = [
    (root, version)
    for root, versions in {
        "debian11": ("3.11", "3.13"),
        "debian12": ("3.11", "3.12", "3.13"),
        "sid": ("3.14",),
        "arm64": ("3.11",),
        "arm64-trixie": ("3.13",),
        "arm64-sid": ("3.14",),
    }.items()
    for version in versions
]
IDENTITY = """
import os, platform, sys
print(sys.version_info.minor, platform.machine(), os.confstr("CS_GNU_LIBC_VERSION"), sep="\\n")
"""
CHECK_NATIVE = """
from deepcontext import Profile

profile = Profile.load("train.dcprof")
names = [profile.frame(node).name for node in profile.query().kind("native").nodes()]
assert any(name.startswith("torch::autograd::") for name in names), names
counts = {name: count for name, count in profile.trust.counters.items() if name.startswith("native_")}
assert counts["native_walks"] > 100, counts
assert not any(count for name, count in counts.items() if "_ended_" in name), counts
"""

# Stands for the compiler that a root has not: hands out what was compiled outside.
STAND_IN = """#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" != -o ] || out=$2
  shift
done
exec cp "$(dirname "$0")/compiled" "$out"
"""


class Root:
    """A folder that commands see as the whole system, with a wheel and what it needs in /try."""

    def __init__(self, root: Path, python: Path) -> None:
        self.root = root
        self.python = python
        self.folder = Path(tempfile.mkdtemp(prefix="try-", dir=root))
        self.inside = Path("/") / self.folder.name
        self.machine = ""

    def run(self, *command: str | Path, status: int = 0) -> str:
        """Return what a command printed, which runs in the folder and sees nothing outside the root."""
        words = ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"]
        enter = ["unshare", "--mount", "--net", "sh", "-c", ENTER, self.root]
        change = ["sh", "-c", 'cd "$0" && exec "$@"', self.inside]
        done = subprocess.run(
            [str(word) for word in (*enter, *words, *change, *command)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def install(self, *more: str) -> Path:
        """Install the wheel of the root's Python, and more, into an environment; return its commands."""
        minor, machine, glibc = self.run(self.python, "-c", IDENTITY).splitlines()
        tag, self.machine = f"cp3{minor}", machine
        wheels = [each for each in WHEELS if f"-{tag}-" in each.name and machine in each.name]
        if not wheels:
            pytest.skip(f"no wheel of {tag} for {machine} in dist/ (tools/build_wheels.sh)")
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:"]
            + ["--python-version", f"3.{minor}", "--implementation", "cp", "--abi", tag]
            + [f"--platform=manylinux_2_{each}_{machine}" for each in _minors(glibc)]
            + [
                f"--platform=manylinux2014_{machine}",
                "-d",
                self.folder / "wheels",
                wheels[0],
                *more,
            ],
            check=True,
            timeout=600,
        )
        self.run(self.python, "-m", "venv", "env")
        name = wheels[0].name
        shutil.copy(wheels[0], self.folder / "wheels" / name)
        self.run(
            "env/bin/pip", "install", "-q", "--no-index", "-f", "wheels", f"wheels/{name}", *more
        )
        return self.inside / "env" / "bin"


def _minors(glibc: str) -> range:
    found = re.fullmatch(r"glibc 2\.(\d+)", glibc)
    assert found, glibc
    return range(17, int(found[1]) + 1)


@pytest.fixture(params=PYTHONS, ids="-".join)
def root(request: pytest.FixtureRequest) -> Iterator[Root]:
    name, version = request.param
    python = Path("/pythons") / f"python{version}"
    if os.getuid() != 0 or not (ROOTS / name / python.relative_to("/")).is_symlink():
        pytest.skip(f"no {python} in {ROOTS / name}, or not root: tools/make_roots.sh makes it")
    made = Root(ROOTS / name, python)
    yield made
    shutil.rmtree(made.folder)


def test_profile_report_and_page(root: Root) -> None:
    commands = root.install()
    assert not list((root.root / "usr" / "bin").glob("*c++*"))
    (root.folder / "train.py").write_text(PROGRAM, "utf-8")
    root.run(commands / "deepcontext", "doctor")
    printed = root.run(commands / "deepcontext", "profile", "--no-report", "train.py", "--epochs")
    assert printed == "['--epochs'] 3.0\n"
    report = root.run(commands / "deepcontext", "report", "train.dcprof")
    assert re.search(r"train\.py:6", report), report
    root.run(commands / "deepcontext", "view", "train.dcprof", "--html", "page.html")
    assert (root.folder / "page.html").stat().st_size > 100_000


@pytest.mark.skipif("DEEPCONTEXT_ROOTS_TORCH" not in os.environ, reason="names no torch")
def test_a_training_step_with_native_frames(root: Root) -> None:
    commands = root.install(os.environ["DEEPCONTEXT_ROOTS_TORCH"])
    (root.folder / "train.py").write_text(TRAINING, "utf-8")
    root.run(commands / "deepcontext", "profile", "--native", "-q", "train.py")
    report = root.run(commands / "deepcontext", "report", "--full", "train.dcprof")
    assert "aten::addmm" in report
    assert "AddmmBackward0" in report
    root.run(commands / "python", "-c", CHECK_NATIVE)


def test_native_frames_between_python_frames(root: Root) -> None:
    """On every CPython and processor; the library is compiled by what compiled the wheel."""
    commands = root.install("pytest", "pytest-timeout")
    compiler = CHECKOUT / "build" / "wheels" / f"compilers-{root.machine}" / "c++"
    if not compiler.exists():
        pytest.skip(f"no {compiler}: tools/build_wheels.sh makes it")
    tests = root.folder / "tests"
    shutil.copytree(CHECKOUT / "tests" / "fakes", tests / "fakes")
    for name in ("conftest.py", "test_native_frames.py", "test_walk_current_frames.py"):
        (tests / "native").mkdir(exist_ok=True)
        shutil.copy(CHECKOUT / "tests" / "native" / name, tests / "native")
    folder = root.folder / "env" / "bin"
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", "-pthread"]
    source = tests / "fakes" / "native_chain.cpp"
    subprocess.run([compiler, *flags, "-o", folder / "compiled", source], check=True, timeout=300)
    (folder / "c++").write_text(STAND_IN, "utf-8")
    (folder / "c++").chmod(0o755)
    test = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--timeout",
        "600",
        "--rootdir",
        "tests",
    ]
    path = f"PATH={commands}:/usr/bin:/bin"
    printed = root.run("env", path, commands / "python", *test, "tests/native")
    assert re.search(r"^\d+ passed", printed, re.MULTILINE), printed
