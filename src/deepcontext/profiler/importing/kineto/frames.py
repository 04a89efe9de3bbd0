"""Frames of what a trace names: Python functions, modules, operators, calls of a GPU's interface.

torch.profiler writes a Python function as ``file(line): name``, where the line is the one at which the
function begins, except in functions that already ran when the profiler started; and it cuts the folders of
`sys.path` off the file, so that the standard library, installed packages and the program look alike.
"""

from __future__ import annotations

import enum
import re
import sys
from dataclasses import dataclass
from typing import Final

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.importing.kineto.columns import Kind

_PYTHON: Final = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<name>.*)", re.DOTALL)
_BUILT_IN: Final = re.compile(
    r"<built-in (?:method|function) (?P<name>\S+)(?: of (?P<of>.*?)(?: object)?(?: at 0x[0-9a-f]+)?)?>"
)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_MODULE: Final = "nn.Module: "
# What torch.nn.Module itself does around `forward`: one frame, the module's, stands for it.
_MODULE_FILE: Final = "torch/nn/modules/module.py"
_MODULE_CALLS: Final = frozenset({"_call_impl", "_wrapped_call_impl", "__call__", "inner"})
_BINDINGS: Final = ("pybind11_builtins.", "PyCapsule", "nanobind.")
_RUN_BACKWARD: Final = "run_backward"
_OPTIMIZER: Final = ("Optimizer.step#", "Optimizer.zero_grad#")
_LOADER: Final = "enumerate(DataLoader)"
_BACKWARD: Final = "autograd::engine::evaluate_function"
# Files of these packages are not the program's own. The trace does not say which folder they were in.
_STANDARD: Final = sys.stdlib_module_names
_PACKAGES: Final = """
accelerate aiohttp aiter apex asyncer bitsandbytes cuda cupy datasets deepspeed diffusers einops
fastapi fbgemm_gpu flash_attn flashinfer fsspec functorch huggingface_hub hydra ipykernel IPython
jax jaxlib lightning lightning_fabric lightning_utilities megatron multiprocess numpy omegaconf
packaging pandas peft PIL pkg_resources psutil pydantic pytest pytorch_lightning ray regex requests
safetensors scipy sentencepiece setuptools sglang sklearn starlette tensorboard tiktoken timm
tokenizers torch torch_geometric torchao torchaudio torchgen torchmetrics torchrec torchvision
tornado tqdm transformer_engine transformers triton triton_kernels trl typing_extensions urllib3
uvicorn uvloop vllm wandb xformers yaml zmq
"""
_INSTALLED: Final = frozenset(_PACKAGES.split())


class Role(enum.IntEnum):
    """What a frame does to the phase of what is below."""

    PLAIN = 0
    MODULE = 1
    OPERATOR = 2
    OPTIMIZER = 3
    LOADER = 4
    BACKWARD = 5


@dataclass(frozen=True, slots=True)
class Place:
    """What the tree has for a name.

    Attributes:
        frame: the frame, None where the name has none of its own.
        role: what it does to the phase of what is below.
        runs_backward: whether it is the call in which a thread waits for a backward pass.
    """

    frame: Frame | None
    role: Role = Role.PLAIN
    runs_backward: bool = False


def place_of(kind: Kind, name: str) -> Place:
    """Return what the tree has for an event."""
    match kind:
        case Kind.OPERATOR:
            role = Role.BACKWARD if name.startswith(_BACKWARD) else Role.OPERATOR
            return Place(Frame(FrameKind.OPERATOR, name or "<operator without a name>"), role)
        case Kind.SCOPE:
            return Place(
                Frame(FrameKind.SCOPE, name or "<scope without a name>"), _role_of_scope(name)
            )
        case Kind.CALL:
            return Place(Frame(FrameKind.GPU_API, name or "<call without a name>"))
        case Kind.PYTHON:
            return _python(name)


def _role_of_scope(name: str) -> Role:
    if name.startswith(_OPTIMIZER):
        return Role.OPTIMIZER
    return Role.LOADER if name.startswith(_LOADER) else Role.PLAIN


def _python(name: str) -> Place:
    if name.startswith(_MODULE):
        return Place(Frame(FrameKind.MODULE, _module(name.removeprefix(_MODULE))), Role.MODULE)
    found = _PYTHON.fullmatch(name)
    if found:
        if found["file"].endswith(_MODULE_FILE) and found["name"] in _MODULE_CALLS:
            return Place(None)
        line = int(found["line"][:9])
        return Place(Frame(FrameKind.PYTHON, found["name"], _file(found["file"]), line))
    built_in = _BUILT_IN.fullmatch(name)
    if built_in:
        of = (built_in["of"] or "").removeprefix("type").strip()
        # What C++ binds to Python has no class of a name that anybody knows.
        of = "" if of.startswith(_BINDINGS) else of
        text = f"{of}.{built_in['name']}" if of else built_in["name"]
        return Place(Frame(FrameKind.NATIVE, text), runs_backward=built_in["name"] == _RUN_BACKWARD)
    return Place(Frame(FrameKind.NATIVE, _ADDRESS.sub("", name) or "<function without a name>"))


def _module(text: str) -> str:
    """Return ``Linear '3'`` of ``Linear_3``: the trace numbers the modules of a class by first call."""
    name, _, number = text.rpartition("_")
    return f"{name} '{number}'" if name and number.isdigit() else text


def _file(file: str) -> str:
    """Return the file with a folder that says whose it is, where the first part of its path tells."""
    if file.startswith(("/", "<")):
        return file
    first = file.partition("/")[0].removesuffix(".py")
    if first in _INSTALLED:
        return f"/site-packages/{file}"
    if first in _STANDARD:
        return f"/lib/python3/{file}"
    return file


def phase_below(above: Phase, role: Role, *, is_sequenced: bool, is_backward: bool) -> Phase:
    """Return the phase of a frame, by the rule that recorded profiles follow (`native/core/order.cpp`).

    Args:
        above: phase of the frame above.
        role: what the frame is.
        is_sequenced: whether autograd has numbered the operator.
        is_backward: whether it belongs to a forward operator elsewhere.
    """
    if role is Role.BACKWARD or is_backward:
        return Phase.BACKWARD
    if role in _OWN_PHASE:
        return _OWN_PHASE[role]
    if above is not Phase.NONE:
        return _MODULE_BELOW.get(above, above) if role is Role.MODULE else above
    if role is Role.MODULE or (role is Role.OPERATOR and is_sequenced):
        return Phase.FORWARD
    return Phase.OTHER if role is Role.OPERATOR else Phase.NONE


_OWN_PHASE: Final = {Role.OPTIMIZER: Phase.OPTIMIZER, Role.LOADER: Phase.DATA_LOADING}
# A module that a backward pass calls runs again; an optimizer calls one in the closure given to step().
_MODULE_BELOW: Final = {Phase.BACKWARD: Phase.RECOMPUTE, Phase.OPTIMIZER: Phase.FORWARD}
