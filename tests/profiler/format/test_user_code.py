"""Which files are the user's."""

from __future__ import annotations

import pytest

from deepcontext.profiler.format.user_code import is_user_file


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
