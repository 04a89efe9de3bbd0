"""Folders of containers and generated files do not split the paths of ranks."""

from __future__ import annotations

import pytest

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.job.joined_file import Folders, joined_file
from deepcontext.profiler.model.run_info import RunInfo

CODE = "c2p" + "a" * 48


@pytest.mark.parametrize(
    ("script", "cwd", "file", "joined"),
    [
        ("train.py", "/home/me/job", "/home/me/job/data/load.py", "<program>/data/load.py"),
        ("src/train.py", "/w/a", "/w/a/src/model.py", "<program>/model.py"),
        ("/c7/src/train.py", "/tmp", "/c7/src/model.py", "<program>/model.py"),
        ("src/train.py", "/w/a", "/w/a/lib/ops.py", "<working>/lib/ops.py"),
        ("-m train", "/w/a", "/w/a/train/__main__.py", "<program>/train/__main__.py"),
        ("", "", "/w/a/train.py", "/w/a/train.py"),
        ("x.py", "/w", "/c7/lib/python3.11/site-packages/torch/nn.py", "<packages>/torch/nn.py"),
        ("x.py", "/w", "/usr/lib/python3/dist-packages/a.py", "<packages>/a.py"),
        ("x.py", "/w", "/opt/conda/lib/python3.11/threading.py", "<python>/threading.py"),
        ("x.py", "/w", f"/tmp/torchinductor_me/2p/{CODE}.py", "<generated>"),
        ("x.py", "/w", f"/scratch/17/2p/{CODE}.py", "<generated>"),
        ("x.py", "/w", "<eval_with_key>.12", "<generated>"),
        ("x.py", "/w", "<string>", "<string>"),
        ("x.py", "/w", "", ""),
    ],
)
def test_a_file_is_compared_by_what_containers_share(
    script: str, cwd: str, file: str, joined: str
) -> None:
    folders = Folders.of(RunInfo(script=script, cwd=cwd))
    assert joined_file(file, FrameKind.PYTHON, folders) == joined


def test_a_native_library_is_compared_by_its_name() -> None:
    folders = Folders.of(RunInfo(script="x.py", cwd="/w"))
    native = FrameKind.NATIVE
    assert joined_file("/c7/lib/libc.so.6", native, folders) == "libc.so.6"
    torch = "/c7/lib/python3.11/site-packages/torch/lib/libtorch.so"
    assert joined_file(torch, native, folders) == "<packages>/torch/lib/libtorch.so"
