"""The file of a session: what is refused at the start, and what happens if the name is taken."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deepcontext
from deepcontext import Profile, errors

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = "print('ran')\n"


def names(path: Path) -> set[str]:
    return {node.frame.name for node in Profile.load(path).query().kind("scope")}


@pytest.mark.parametrize("snapshot_interval", [0, 60])
def test_a_session_never_replaces_a_file_that_is_no_profile(
    tmp_path: Path, snapshot_interval: float
) -> None:
    path = tmp_path / "hello.py"
    path.write_text(SCRIPT, encoding="utf-8")
    with pytest.raises(errors.UserError, match="the file exists and is not a profile"):
        deepcontext.start(path, snapshot_interval=snapshot_interval)
    assert path.read_text(encoding="utf-8") == SCRIPT
    deepcontext.start(path, snapshot_interval=snapshot_interval, force=True)
    deepcontext.stop()
    assert Profile.load(path).run.exit_reason == "exit"


def test_an_older_profile_and_an_empty_file_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    path.touch(mode=0o600)
    for scope in ("first", "second"):
        with deepcontext.profile(path), deepcontext.scope(scope):
            pass
        assert names(path) == {scope}
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("snapshot_interval", [0, 60])
def test_a_file_that_appears_meanwhile_is_kept_and_the_profile_is_written_beside_it(
    tmp_path: Path, snapshot_interval: float, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "out.dcprof"
    (tmp_path / "out.2.dcprof").write_text("taken, too", encoding="utf-8")
    session = deepcontext.start(path, snapshot_interval=snapshot_interval)
    with deepcontext.scope("mine"):
        path.unlink(missing_ok=True)
        path.write_text("results of the program", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        profile = deepcontext.stop()
    assert path.read_text(encoding="utf-8") == "results of the program"
    assert (tmp_path / "out.2.dcprof").read_text(encoding="utf-8") == "taken, too"
    assert session.path == tmp_path / "out.3.dcprof"
    assert names(tmp_path / "out.3.dcprof") == {"mine"}
    (note,) = [note for note in profile.trust.notes if "out.dcprof" in note]
    assert "the profile was written to 'out.3.dcprof' in the same folder" in note
    assert note in caplog.text


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_path_that_is_no_file_is_kept_too(
    tmp_path: Path, make: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "out.dcprof"
    deepcontext.start(path, snapshot_interval=0)
    make(path)
    deepcontext.stop()
    assert not path.is_file()
    assert Profile.load(tmp_path / "out.2.dcprof").run.exit_reason == "exit"


def test_a_link_is_followed(tmp_path: Path) -> None:
    link, target = tmp_path / "latest.dcprof", tmp_path / "real.dcprof"
    link.symlink_to(target.name)
    with deepcontext.profile(link, snapshot_interval=60):
        pass
    assert link.is_symlink()
    assert Profile.load(target).run.exit_reason == "exit"


def test_a_device_is_written_to_at_the_end(tmp_path: Path) -> None:
    before = Path(os.devnull).stat()
    with deepcontext.profile(os.devnull, snapshot_interval=0.01) as session:
        session.snapshot()
    after = Path(os.devnull).stat()
    assert (after.st_ino, after.st_rdev) == (before.st_ino, before.st_rdev)


def test_a_pipe_is_refused_because_opening_it_would_block_the_program(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", Path("/dev/stdout")):
        with pytest.raises(errors.UserError, match=r"rewritten while .* name a file"):
            deepcontext.start(name)


def test_the_launcher_says_where_the_profile_is(tmp_path: Path) -> None:
    code = "import os; os.unlink('out.dcprof'); open('out.dcprof', 'w').write('mine')"
    command = [sys.executable, "-m", "deepcontext", "profile", "-o", "out.dcprof"]
    done = subprocess.run(
        [*command, "--no-report", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert (tmp_path / "out.dcprof").read_text(encoding="utf-8") == "mine"
    assert Profile.load(tmp_path / "out.2.dcprof").run.exit_reason == "exit"
    assert "'out.dcprof' was not replaced: the file exists and is not a profile" in done.stderr
    assert "profile written to 'out.2.dcprof'" in done.stderr
    assert "next: deepcontext report out.2.dcprof" in done.stderr
