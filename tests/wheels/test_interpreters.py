"""Which interpreters the wheels are built for, on machines that have them in different places."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _write_command(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)


def _listed(home: Path, roots: Path) -> list[str]:
    """Return what would be built by a machine that has no other interpreter than those in home."""
    done = subprocess.run(
        [ROOT / "tools" / "build_wheels.sh", "-l"],
        env={
            "HOME": str(home),
            "PATH": f"{home / 'bin'}:/usr/bin:/bin",
            "DEEPCONTEXT_ROOTS": str(roots),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return [each for each in done.stdout.splitlines() if str(home) in each or str(roots) in each]


def test_a_command_of_pyenv_that_runs_nothing_is_passed_over(tmp_path: Path) -> None:
    _write_command(tmp_path / "bin" / "python3.12", "echo 'command not found' >&2; exit 127")
    kept = tmp_path / ".pyenv" / "versions" / "3.12.1" / "bin" / "python3.12"
    _write_command(kept, f'exec "{sys.executable}" "$@"')
    assert _listed(tmp_path, tmp_path / "none") == [str(kept)]


def test_a_root_folder_with_headers_lends_its_interpreter(tmp_path: Path) -> None:
    _write_command(tmp_path / "bin" / "python3.14", "exit 127")
    roots = tmp_path / "roots"
    (roots / "arm64" / "pythons").mkdir(parents=True)
    (roots / "arm64" / "pythons" / "python3.14").touch()
    assert _listed(tmp_path, roots) == []
    (roots / "sid" / "pythons").mkdir(parents=True)
    (roots / "sid" / "pythons" / "python3.14").touch()
    (roots / "sid" / "usr" / "include" / "python3.14").mkdir(parents=True)
    assert _listed(tmp_path, roots) == [str(roots / "sid" / "pythons" / "python3.14")]
