"""Which files a writer replaces, which files it keeps, and what a failed write leaves behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from deepcontext.errors import EnvironmentProblem, UserError
from deepcontext.profiler.format import own_os, writing
from deepcontext.profiler.format.writing import PROFILE, FileKind, ForeignFileError

LETTER = FileKind.beginning_with("a letter", b"Dear ")
OLD, NEW = b"Dear Ann, old", b"Dear Ann, new"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", [OLD, b""], ids=["same kind", "empty"])
def test_a_file_of_the_same_kind_or_an_empty_file_is_replaced(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "letter"
    path.write_bytes(content)
    writing.check(path, LETTER)
    assert path.read_bytes() == content
    writing.write(NEW, path, LETTER)
    assert path.read_bytes() == NEW
    assert files(tmp_path) == ["letter"]


@pytest.mark.parametrize("content", [b"print('hello')\n", b"Dear", b"\0" * 100_000])
def test_a_file_of_another_kind_is_kept_unless_forced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hello.py"
    path.write_bytes(content)
    for attempt in (
        lambda: writing.check(path, LETTER),
        lambda: writing.write(NEW, path, LETTER),
    ):
        with pytest.raises(ForeignFileError, match=r"hello\.py': .* is not a letter, .*--force"):
            attempt()
        assert path.read_bytes() == content
        assert files(tmp_path) == ["hello.py"]
    writing.check(path, LETTER, force=True)
    writing.write(NEW, path, LETTER, force=True)
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_permissions_of_a_replaced_file_are_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "letter"
    path.write_bytes(OLD)
    path.chmod(mode)
    writing.write(NEW, path, LETTER)
    assert path.stat().st_mode & 0o777 == mode


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    writing.write(NEW, tmp_path / "letter", LETTER)
    assert (tmp_path / "letter").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_write_protected_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_bytes(OLD)
    path.chmod(0o444)
    with pytest.raises(ForeignFileError, match="write-protected"):
        writing.write(NEW, path, LETTER)
    assert path.read_bytes() == OLD
    writing.write(NEW, path, LETTER, force=True)
    assert path.read_bytes() == NEW
    assert path.stat().st_mode & 0o777 == 0o444


def test_a_file_that_appears_during_the_write_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "letter"
    sync = os.fsync

    def another_process_is_faster(descriptor: int) -> None:
        path.write_bytes(b"mine")
        sync(descriptor)

    monkeypatch.setattr(own_os.os, "fsync", another_process_is_faster)
    with pytest.raises(ForeignFileError):
        writing.write(NEW, path, LETTER)
    assert path.read_bytes() == b"mine"
    assert files(tmp_path) == ["letter"]


def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "letter"
    path.write_bytes(OLD)

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(own_os.os, "fsync", no_space)
    with pytest.raises(EnvironmentProblem, match=r"letter': No space left on device"):
        writing.write(NEW, path, LETTER)
    assert path.read_bytes() == OLD
    assert files(tmp_path) == ["letter"]


def test_a_refusal_by_the_programs_own_code_is_given_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Audit hooks raise exceptions without a number of the operating system."""

    def refuse(_: int) -> None:
        raise PermissionError("not in this sandbox")

    monkeypatch.setattr(own_os.os, "fsync", refuse)
    with pytest.raises(EnvironmentProblem, match=r"letter': not in this sandbox; .*audit hook"):
        writing.write(NEW, tmp_path / "letter", LETTER)


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "letter", tmp_path / "latest"
    link.symlink_to(target)
    writing.write(OLD, link, LETTER)  # its target does not exist yet
    writing.write(NEW, link, LETTER)
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    target.write_bytes(b"other")
    with pytest.raises(ForeignFileError):
        writing.write(NEW, link, LETTER)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "it is a folder; name a file in it"),
        ("none/letter", "the folder '.*none' does not exist; create it first"),
        ("file/letter", r"the folder '.*file' does not exist|Not a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("x" * 300, "File name too long"),
        ("a\0b", "null"),
        ("", "it is a folder"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    before = files(tmp_path)
    for attempt in (
        lambda: writing.check(name, LETTER),
        lambda: writing.write(NEW, name, LETTER, force=True),
    ):
        with pytest.raises(UserError, match=message) as caught:
            attempt()
        assert ".tmp" not in str(caught.value)
    assert files(tmp_path) == before


def test_a_long_name_leaves_room_for_the_temporary_name(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    writing.write(NEW, path, LETTER)
    assert path.read_bytes() == NEW


def test_a_file_system_without_files_is_refused_before_the_work() -> None:
    with pytest.raises(UserError, match="'/proc/letter': ") as caught:
        writing.check("/proc/letter", LETTER)
    assert ".tmp" not in str(caught.value)


def test_devices_are_written_to_and_stay_devices() -> None:
    before = Path(os.devnull).stat()
    writing.check(os.devnull, LETTER)
    writing.write(NEW, os.devnull, LETTER)
    after = Path(os.devnull).stat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (
        before.st_ino,
        before.st_mode,
        before.st_rdev,
    )
    with pytest.raises(EnvironmentProblem, match="'/dev/full': No space left on device"):
        writing.write(NEW, "/dev/full", LETTER)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writing.check(path, LETTER)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    writing.write(NEW, path, LETTER)
    reader.join()
    assert found == [NEW]
    assert path.is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_the_path_of_standard_output_is_not_opened_again(tmp_path: Path, name: str) -> None:
    program = (
        "import sys; from deepcontext.profiler.format import writing;"
        "print('before', flush=True);"
        "writing.write(b'Dear Ann\\n', sys.argv[1], writing.PROFILE);"
        "print('after')"
    )
    path = tmp_path / "out"
    with path.open("wb") as out:
        subprocess.run([sys.executable, "-c", program, name], stdout=out, check=True)
    assert path.read_bytes() == b"before\nDear Ann\nafter\n"


def test_a_pipe_without_a_reader_is_not_reported_as_a_user_error() -> None:
    read, written = os.pipe()
    os.close(read)
    try:
        with pytest.raises(BrokenPipeError):
            writing.write(NEW, f"/dev/fd/{written}", LETTER)
    finally:
        os.close(written)


def test_threads_that_write_into_one_folder_do_not_interfere(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for _ in range(20):
            writing.write(b"Dear %d" % number * 1000, tmp_path / "shared", LETTER)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len((tmp_path / "shared").read_bytes()) == 6000
    assert files(tmp_path) == ["shared"]


def test_a_temporary_file_of_a_killed_process_does_not_block_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_numbers", iter([1, 2]))
    left = tmp_path / f".deepcontext.{os.getpid()}.1.tmp"
    left.write_bytes(b"half")
    writing.write(NEW, tmp_path / "letter", LETTER)
    assert left.read_bytes() == b"half"
    assert (tmp_path / "letter").read_bytes() == NEW


def test_another_users_file_and_folder_are_refused_with_the_reason() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    program = (
        "import os, sys; from deepcontext.profiler.format import writing\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for path in sys.argv[1:]:\n"
        "    for attempt in (writing.check, lambda *a: writing.write(b'', *a)):\n"
        "        try: attempt(path, writing.PROFILE)\n"
        "        except writing.UserError as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as name:  # other users may not enter pytest's
        folder = Path(name)
        folder.chmod(0o755)
        secret = folder / "secret"
        secret.write_bytes(b"\x0a\x13deepcontext profile")
        secret.chmod(0o600)
        done = subprocess.run(
            [sys.executable, "-c", program, str(secret), str(folder / "new")],
            capture_output=True,
            text=True,
            check=True,
        )
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done
    assert all("cannot be read to see what it is (Permission denied)" in line for line in lines[:2])
    assert all("Permission denied; choose a folder" in line for line in lines[2:])


def test_a_profile_begins_with_the_magic_of_its_kind() -> None:
    from tests.synthetic import random_profile

    assert PROFILE.matches(random_profile(3).to_bytes(), "any")


def test_a_file_never_takes_the_descriptor_of_a_closed_standard_stream(tmp_path: Path) -> None:
    """Otherwise, what a library prints to the descriptor would end up in the file."""
    code = """
import os
from deepcontext.profiler.format import own_os, writing

numbers = []
sync = own_os.os.fsync
own_os.os.fsync = lambda number: (numbers.append(number), sync(number))
for number in range(3):
    os.close(number)
writing.write(b"text", "file.txt", writing.FileKind.beginning_with("a text", b"text"))
assert os.open("numbers", os.O_WRONLY | os.O_CREAT) == 0, "a descriptor is left open"
os.write(0, repr(numbers).encode())
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "file.txt").read_text() == "text"
    assert (tmp_path / "numbers").read_text() == "[3]"
