"""Run a program under plain `python` and under `deepcontext profile`, and compare.

The fixture `same_as_python` asserts equal exit status, standard output and standard error (apart
from lines of the profiler), and that a readable profile is left.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

# What the console script holds; unlike `python -m deepcontext` it puts no folder on sys.path.
_DEEPCONTEXT = (
    sys.executable,
    "-P",
    "-c",
    "import sys; from deepcontext.ui.cli.app import main; sys.exit(main())",
)
_TIMEOUT_S = 60.0
_ADDRESS = re.compile(rb"0x[0-9a-f]+|(?<=started )\d+")


@dataclass(frozen=True)
class Outcome:
    """What can be seen of a program from outside."""

    status: int
    stdout: bytes
    stderr: str


@dataclass
class Conformance:
    """One program in an empty folder."""

    folder: Path
    profile_path: Path
    files: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self,
        source: str,
        *,
        status: int = 0,
        words: Sequence[str] = ("program.py",),
        files: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        **settings: Any,
    ) -> deepcontext.Profile:
        """Assert that `source`, in program.py, behaves the same; return its profile.

        Args:
            source: text of program.py.
            status: exit status plain python must end with, so that a row tests what it says.
            words: what follows `python`.
            files: more files, by their path in the program's folder.
            options: more options of `deepcontext profile`.
            settings: those of `run`.
        """
        for name, text in {"program.py": source, **(files or {})}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        plain = self.run([sys.executable, *words], **settings)
        assert plain.status == status, plain
        command = self.profile_command(*options, *words)
        profiled = self.run(command, is_profiled=True, **settings)
        assert profiled == plain
        return deepcontext.Profile.load(self.profile_path)

    def without_beginning(
        self, source: str, *, status: int, words: Sequence[str] = ("program.py",)
    ) -> None:
        """Assert the same of a program whose first line is never run; it leaves no profile."""
        (self.folder / "program.py").write_text(source, encoding="utf-8")
        plain = self.run([sys.executable, *words])
        assert plain.status == status, plain
        profiled = self.run(self.profile_command(*words), is_profiled=True)
        assert profiled == plain
        assert not self.profile_path.exists()

    def profile_command(self, *words: str) -> list[str]:
        own = ["-o", str(self.profile_path), "--no-report", "--snapshot-interval", "0.2"]
        return [*_DEEPCONTEXT, "profile", *own, *words]

    def run(  # noqa: PLR0913  the settings of one row
        self,
        command: Sequence[str],
        *,
        is_profiled: bool = False,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        action: Callable[[subprocess.Popen[bytes]], None] | None = None,
        normalize: Callable[[str], str] = str,
        prefix: Sequence[str] = (),
    ) -> Outcome:
        """Run one command in the program's folder.

        Args:
            command: its words.
            is_profiled: whether lines of the profiler are removed from its standard error.
            stdin: what it can read.
            environment: variables on top of this process's, in which no PYTHON... is set.
            action: done to the process once it has printed the line "ready" (and, when profiled,
                once a first snapshot exists).
            normalize: applied to standard error, for parts that differ between any two runs.
            prefix: words before the command, for example of `env`.
        """
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        with subprocess.Popen(
            [*prefix, *command],
            cwd=self.folder,
            env={**inherited, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                early = self._act(process, action, is_profiled=is_profiled) if action else b""
                stdout, stderr = process.communicate(stdin, timeout=_TIMEOUT_S)
            except BaseException:
                process.kill()
                raise
        text = (stderr or b"").decode(errors="backslashreplace")
        if is_profiled:
            lines = text.splitlines(keepends=True)
            text = "".join(line for line in lines if not line.startswith("[deepcontext] "))
        output = _ADDRESS.sub(rb"0x", early + (stdout or b""))
        return Outcome(
            process.returncode, output, normalize(_ADDRESS.sub(b"0x", text.encode()).decode())
        )

    def _act(
        self,
        process: subprocess.Popen[bytes],
        action: Callable[[subprocess.Popen[bytes]], None],
        *,
        is_profiled: bool,
    ) -> bytes:
        assert process.stdout is not None
        early = os.read(process.stdout.fileno(), 100)
        deadline = time.monotonic() + _TIMEOUT_S
        while is_profiled and not self.profile_path.exists():
            assert time.monotonic() < deadline, "no snapshot"
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.1)  # from the line to the call the program blocks in
        action(process)
        return early


@pytest.fixture
def same_as_python(tmp_path: Path) -> Conformance:
    """Compare a program under `python` and under `deepcontext profile`."""
    folder = tmp_path / "program"
    folder.mkdir()
    return Conformance(folder, tmp_path / "out.dcprof")
