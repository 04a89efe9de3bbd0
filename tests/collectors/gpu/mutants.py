"""A copy of the package from which any one mend of `mutations.toml` can be taken out.

The C++ mends are all behind switches that read one environment variable, so that the copy is built
once; a Python mend is taken out by writing its file. The checkout itself is never changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tomllib
import xml.etree.ElementTree as ET
from collections import ChainMap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
SWITCH = "MUTATED"
VARIABLE = "DEEPCONTEXT_MUTATION"
_COPIED = ("CMakeLists.txt", "native", "src")
_HEADER = f"""#pragma once
#include <cstdlib>
#include <cstring>
inline bool mutated(const char *name) {{
  static const char *const chosen = std::getenv("{VARIABLE}");
  return chosen && std::strcmp(chosen, name) == 0;
}}
"""
_HEADER_FILE = "mutated.h"
_RUN_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mend, and what happens without it.

    Attributes:
        name: unique, for the switch and for pytest's `-k`.
        demand: what the mend is for.
        file: where the mend is, from the checkout's root.
        code: text that stands in the file exactly once.
        without: what stands there without the mend; in C++ an expression with `MUTATED`.
        fails: tests of this folder that fail then; of parameters, at least one.
    """

    name: str
    demand: str
    file: str
    code: str
    without: str
    fails: tuple[str, ...]

    @property
    def is_native(self) -> bool:
        return self.file.startswith("native/")


def load() -> list[Mutation]:
    """Read the list."""
    entries = tomllib.loads((FOLDER / "mutations.toml").read_text(encoding="utf-8"))["mutation"]
    return [Mutation(**{**entry, "fails": tuple(entry["fails"])}) for entry in entries]


@dataclass(frozen=True, slots=True)
class Result:
    """How the tests of one run ended; `failures` has the first line of each failure by test."""

    count: int
    failures: dict[str, str]

    def failure_of(self, test: str) -> str:
        """Return why a test failed with any of its parameters; "" if it passed."""
        name = test.partition("::")[2]
        found = (
            why
            for each, why in self.failures.items()
            if each == name or each.startswith(f"{name}[")
        )
        return next(found, "")


class Copy:
    """The package with a switch for each mend, in an environment of its own."""

    def __init__(self, folder: Path, mutations: Sequence[Mutation]) -> None:
        """Bring the copy in `folder` up to date and build what has changed."""
        self._folder = folder
        self._mutations = mutations
        self._write_sources()
        self._python = self._make_environment()
        self._build()

    def run(self, tests: Sequence[str], mutation: Mutation | None = None) -> Result:
        """Run tests of this folder, without a mend if one is given."""
        report = self._folder / "result.xml"
        report.unlink(missing_ok=True)
        command = [str(self._python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-o", "addopts=--import-mode=importlib", "--tb=short", f"--junitxml={report}"]
        command += [str(FOLDER / test) for test in tests]
        environment = {
            **os.environ,
            "DEEPCONTEXT_FAKES": str(self._folder / "fakes"),
            "PYTHONDONTWRITEBYTECODE": "1",  # a file may be written twice in a second
        }
        if mutation and mutation.is_native:
            environment[VARIABLE] = mutation.name
        with self._taken_out(mutation):
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=_RUN_TIMEOUT_S,
            )
        if done.returncode < 0:
            how = f"ended with {signal.Signals(-done.returncode).name}"
            if len(tests) == 1:
                return Result(1, {tests[0].partition("::")[2]: how})
            alone = [self.run([test], mutation) for test in tests]
            return Result(len(tests), dict(ChainMap(*(each.failures for each in alone))))
        if done.returncode not in {0, 1}:  # not the tests, but pytest failed
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return _read(report)

    def _write_sources(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", *_COPIED], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in listed.stdout.split("\n")[:-1]:
            of_file = [each for each in self._mutations if each.file == name and each.is_native]
            _write(self._folder / name, switched((ROOT / name).read_bytes(), of_file))
        _write(self._folder / "native" / _HEADER_FILE, _HEADER.encode())

    def _make_environment(self) -> Path:
        """Make an environment with the packages of this one and the copy of the profiler."""
        python = self._folder / "environment" / "bin" / "python"
        if not python.exists():
            command = [sys.executable, "-m", "venv", "--without-pip", str(python.parents[1])]
            subprocess.run(command, check=True)
        # A path in such a file gets no hooks, so that the editable install stays out.
        own = python.parents[1] / "lib" / f"python{sysconfig.get_python_version()}"
        paths = f"{self._folder / 'src'}\n{sysconfig.get_path('purelib')}\n"
        _write(own / "site-packages" / "copy.pth", paths.encode())
        return python

    def _build(self) -> None:
        build = str(self._folder / "build")
        configure = ["cmake", "-S", str(self._folder), "-B", build, "-G", "Ninja"]
        configure += [f"-DPython_EXECUTABLE={self._python}", "-DSKBUILD_PROJECT_VERSION=0"]
        # As fast to compile as can be, because only the behaviour counts.
        configure += ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1"]
        for command in (
            configure,
            ["cmake", "--build", build],
            ["cmake", "--install", build, "--prefix", str(self._folder / "src")],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

    @contextlib.contextmanager
    def _taken_out(self, mutation: Mutation | None) -> Iterator[None]:
        """Take a mend out of its Python file."""
        if mutation is None or mutation.is_native:
            yield
            return
        file = self._folder / mutation.file
        whole = file.read_text(encoding="utf-8")
        file.write_text(whole.replace(mutation.code, mutation.without), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(whole, encoding="utf-8")


def switched(source: bytes, mutations: Sequence[Mutation]) -> bytes:
    """Return C++ source with a switch for each mend."""
    if not mutations:
        return source
    text = source.decode()
    for mutation in sorted(mutations, key=lambda each: text.index(each.code), reverse=True):
        start = text.index(mutation.code)
        switch = re.sub(rf"\b{SWITCH}\b", f'mutated("{mutation.name}")', mutation.without)
        text = text[:start] + switch + text[start + len(mutation.code) :]
    return f'#include "{_HEADER_FILE}"\n{text}'.encode()


def _write(file: Path, content: bytes) -> None:
    """Write a file unless it has this content, so that only what changed is built again."""
    if not file.exists() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _read(report: Path) -> Result:
    cases = list(ET.parse(report).getroot().iter("testcase"))
    failures = {}
    for case in cases:
        for problem in (*case.iter("failure"), *case.iter("error")):
            why = problem.get("message", "").partition("\n")[0]
            failures[case.get("name", "")] = why or problem.tag
    return Result(len(cases), failures)
