"""`deepcontext view`: what it prints, writes and refuses."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

from deepcontext.ui.cli import app
from deepcontext.ui.cli.open_run import open_profiles
from deepcontext.ui.web import serve
from deepcontext.ui.web.about import about
from deepcontext.ui.web.open_profiles import MOST_COMPARED

if TYPE_CHECKING:
    from pathlib import Path


def test_the_server_runs_on_this_machine_until_it_is_interrupted(training_folder: Path) -> None:
    profile = str(training_folder / "train.dcprof")
    command = [sys.executable, "-m", "deepcontext", "view", "--no-browser", profile]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as page:
            assert b"deepcontext" in page.read()
        with urllib.request.urlopen(f"{address}api/about") as answer:
            assert b"train.dcprof" in answer.read()
        server.send_signal(2)
        assert server.wait(timeout=20) == 0


def test_a_remote_shell_gets_the_command_for_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.5 50514 10.0.0.9 22")
    monkeypatch.setenv("USER", "me")
    assert serve.tunnel(8123) == "ssh -N -L 8123:127.0.0.1:8123 me@10.0.0.9"
    monkeypatch.delenv("SSH_CONNECTION")
    assert serve.tunnel(8123) is None


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "[::1]")],
)
def test_the_address_printed_can_be_opened(host: str, shown: str) -> None:
    assert serve.address(host, 80, "t") == f"http://{shown}:80/t/"


def test_a_port_in_use_is_reported(
    training_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["view", "--no-browser", "--port", port, str(training_folder / "train.dcprof")]
        assert app.main(words) == 4
    error = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1 port {port}" in error
    assert "--port" in error


@pytest.mark.parametrize("port", ["-1", "65536", "x", ""])
def test_an_invalid_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["view", f"--port={port}", "x.dcprof"]) == 2
    assert "expected a port from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["nothing.dcprof"], ["--html", "x.html", "nothing.dcprof"]])
def test_a_missing_file_is_reported(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["view", "--no-browser", *words]) == 2
    assert "nothing.dcprof" in capsys.readouterr().err


def test_a_damaged_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.dcprof"
    path.write_bytes(b"nonsense")
    assert app.main(["view", "--no-browser", str(path)]) == 5
    assert "bad.dcprof" in capsys.readouterr().err


def test_one_file_is_written_and_lacks_nothing(
    training_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = training_folder / "page.html"
    assert app.main(["view", str(training_folder / "train.dcprof"), "--html", str(target)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"written to '{target}'")
    assert captured.err == ""
    assert target.read_text("utf-8").startswith("<!doctype html>")


def test_a_missing_folder_is_reported(
    training_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = training_folder / "no" / "page.html"
    assert app.main(["view", str(training_folder / "train.dcprof"), "--html", str(target)]) == 2
    assert f"cannot write '{target}'" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 3, MOST_COMPARED])
def test_all_profiles_of_the_command_line_are_compared(training_folder: Path, count: int) -> None:
    opened = open_profiles([str(training_folder / "train.dcprof")] * count, source_text=True)
    assert about(opened).compared == count


def test_more_profiles_than_a_table_has_columns_are_refused(
    training_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles = [str(training_folder / "train.dcprof")] * (MOST_COMPARED + 1)
    assert app.main(["view", "--no-browser", *profiles]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "cannot compare 9 runs: the page compares up to 8; open fewer" in error


def test_profiles_of_one_name_are_told_apart(
    training_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(training_folder)
    for folder in ("runs/old", "runs/new"):
        (training_folder / folder).mkdir(parents=True)
        shutil.copy("train.dcprof", folder)
    words = ["runs/old/train.dcprof", "runs/new/train.dcprof", "plain.dcprof"]

    def names(count: int) -> list[str]:
        return [each.name for each in open_profiles(words[-count:], source_text=True).refresh()]

    assert names(3) == ["old/train.dcprof", "new/train.dcprof", "plain.dcprof"]
    assert names(2) == ["train.dcprof", "plain.dcprof"]
