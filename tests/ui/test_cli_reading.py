"""Commands that read a profile write nothing to it or beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.ui.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IN, OUT = "kept/train.dcprof", "out"


@pytest.fixture(params=[0o444, 0o644], ids=["write-protected", "writable"])
def kept(
    request: pytest.FixtureRequest, training_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Return a folder with two profiles, write-protected like the profiles or not."""
    monkeypatch.chdir(training_folder)
    folder = training_folder / "kept"
    folder.mkdir()
    for name in ("train.dcprof", "empty.dcprof"):
        (training_folder / name).rename(folder / name)
        (folder / name).chmod(request.param)
    folder.chmod(request.param | 0o111)
    yield folder
    folder.chmod(0o755)


def state(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {"": (folder.stat().st_mode, folder.stat().st_mtime_ns)}
    for path in folder.iterdir():
        status = path.stat()
        found[path.name] = (status.st_ino, status.st_mode, status.st_mtime_ns, path.read_bytes())
    return found


@pytest.mark.parametrize(
    "words",
    [
        ["report", IN],
        ["report", "--summary", IN],
        ["report", "--json", IN],
        ["analyze", IN],
        ["analyze", "--json", IN],
        ["analyze", "--markdown", IN],
        ["analyze", "--only", "hotspot", IN],
        ["analyze", "kept/empty.dcprof"],
        ["view", IN, "--html", OUT],
        ["diff", IN, "kept/empty.dcprof"],
        ["export", IN, "--format", "pprof", "-o", OUT],
        ["export", IN, "--format", "collapsed", "-o", "-"],
        ["merge", IN, "kept/empty.dcprof", "-o", OUT],
    ],
    ids=" ".join,
)
def test_the_profile_is_as_it_was(kept: Path, words: list[str]) -> None:
    before = state(kept)
    assert app.main(words) == 0
    assert state(kept) == before
