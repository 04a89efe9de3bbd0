"""`deepcontext report FILE`: the right content, and one clear line for bad files."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deepcontext.ui.cli import app

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def profile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "run.dcprof"
    command = [sys.executable, "-m", "deepcontext", "profile", "-q", "-o", str(path), "-c", "pass"]
    subprocess.run(command, check=True)
    return path


def test_unknown_metric_names_those_that_exist(
    profile_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--metric", "gpu"], ["--json", "--metric", "gpu"]):
        assert app.main(["report", str(profile_path), *words]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert "'gpu'" in error
        assert "host_time_ns" in error


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"#!/bin/sh\n",
        b"\x0a\x13deepcontext profile",
        b"\x00" * 4096,
        b"PK\x03\x04" + b"x" * 99,
    ],
    ids=["empty", "text", "start only", "zeros", "zip"],
)
def test_file_that_is_no_profile_is_a_data_error(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "foreign.dcprof"
    path.write_bytes(content)
    assert app.main(["report", str(path)]) == 5
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert "foreign.dcprof" in error
    assert error.count("\n") == 1


def test_truncated_profile_is_a_data_error(
    profile_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.dcprof"
    path.write_bytes(profile_path.read_bytes()[:-7])
    assert app.main(["report", str(path)]) == 5
    assert "cut.dcprof" in capsys.readouterr().err


def test_missing_file_and_folder_give_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path / "gone.dcprof", tmp_path):
        assert app.main(["report", str(path)]) in {2, 5}
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert path.name in error
        assert error.count("\n") == 1
