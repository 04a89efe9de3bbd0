"""Which files are the user's, and the text of their lines."""

from __future__ import annotations

import linecache
import os
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format.user_code import is_user_file
from deepcontext.profiler.model.source import line_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "file",
    [
        "/home/me/train.py",
        "/home/me/torch/train.py",
        "/home/me/lib/python/tool.py",
        "/opt/project/deepcontext/train.py",
        "/tmp/ipykernel_12/3.py",
        "/home/me/torch_geometric_train.py",
        "/home/me/.cache/bazel/_bazel_me/0f/execroot/main/bazel-out/bin/train.runfiles/main/train.py",
        "/home/me/my.cache/train.py",
        "/home/me/ab/cab.py",
        "/home/me/sitecustomize.py",
        "<string>",
        "<stdin>",
        "<ipython-input-3-abc>",
        "<python-input-0>",
        "<doctest steps.md[1]>",
        "<dynamic-code>",
        "train.py",
    ],
)
def test_user_files(file: str) -> None:
    assert is_user_file(file)


@pytest.mark.parametrize(
    "file",
    [
        "",
        "/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
        "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
        "/usr/lib/python3.11/contextlib.py",
        "/opt/python/lib/python3.13t/threading.py",
        "/usr/lib64/python3.12/queue.py",
        "/home/me/pytorch/torch/nn/functional.py",
        "/home/me/pytorch/torch/_dynamo/eval_frame.py",
        "/home/me/pytorch/torch/functional.py",
        "/tmp/torchinductor_me/ab/cabc.py",
        f"/scratch/compiled/ab/cab{'q' * 49}.py",
        "/home/me/.cache/vllm/torch_compile_cache/1a2b3c/rank_0_0/backbone/computation_graph.py",
        "/scratch/torch_compile_cache/1a2b3c/rank_0_0/backbone/transformed_code.py",
        "/scratch/vllm/inductor_cache/kz/generated.py",
        "/home/me/.cache/huggingface/modules/transformers_modules/mine/modeling.py",
        "/tmp/torch_geometric.nn.conv.gat_conv_GATConv_propagate_lc17ii1t.py",
        "/home/me/deepcontext/src/deepcontext/profiler/recording/session.py",
        "/home/me/train.dcrun/.launch/sitecustomize.py",
        "<frozen runpy>",
        "<eval_with_key>.3",
        "<__array_function__ internals>",
    ],
)
def test_files_of_libraries(file: str) -> None:
    assert not is_user_file(file)


def test_text_of_a_line(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("def f():\n    return 1\n", encoding="utf-8")
    assert line_text(str(file), 2) == "return 1"
    assert line_text(str(file), 99) == ""
    assert line_text(str(tmp_path / "gone.py"), 1) == ""
    assert line_text("bad\x00name", 1) == ""
    assert line_text("<string>", 1) == ""


def test_text_follows_changes_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("a = 1\n", encoding="utf-8")
    assert line_text(str(file), 1) == "a = 1"
    file.write_text("another = 2\n", encoding="utf-8")
    assert line_text(str(file), 1) == "another = 2"


def test_no_text_from_a_file_that_was_changed_after_the_run(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("a = 1\n", encoding="utf-8")
    os.utime(file, ns=(2_000, 2_000))
    assert line_text(str(file), 1, not_after_ns=2_000) == "a = 1"
    assert line_text(str(file), 1, not_after_ns=1_999) == ""


def test_binary_file_has_no_text(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(b"\xff\xfe\x00\x81")
    assert line_text(str(file), 1) == ""


def test_a_notebook_cell_has_its_text_in_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell is as ipykernel leaves it; the file of its name never existed."""
    name = "/tmp/ipykernel_1/4278877317.py"
    lines = ["def step():\n", "    return 1\n"]
    monkeypatch.setitem(linecache.cache, name, (23, None, lines, name))
    assert line_text(name, 2) == "return 1"


def test_a_missing_file_has_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(tmp_path / "gone.py")
    monkeypatch.setitem(linecache.cache, name, (3, 1.0, ["pass\n"], name))
    assert line_text(name, 1) == ""
