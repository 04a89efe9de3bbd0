"""Tell the native observer which tensors must not be asked for sizes: `native/torch/tensor_keys.h`."""

from __future__ import annotations

import sys
from typing import Any, Final

from deepcontext import _native
from deepcontext.collectors.shared.internal_thread import run_in_internal_thread

# Tensors with these keys stand for others: subclasses and tensors of torch.compile (Python), tensors
# without in-place operators (Functionalize), tensors of torch.func.
_STANDING_FOR_OTHERS: Final = (
    "Python",
    "Functionalize",
    "FuncTorchBatched",
    "FuncTorchGradWrapper",
)


def find_tensor_keys() -> str:
    """Find where tensors of the loaded torch keep their keys; return "" or why they are not known.

    On a new thread, where no mode of the program makes other tensors than asked for.
    """
    try:
        return run_in_internal_thread(_find)
    except Exception as error:  # noqa: BLE001  an odd torch is a reason, never a crash
        return f"dispatch keys of tensors are not known: {type(error).__name__}: {error}"


def _find() -> str:
    core: Any = sys.modules["torch"]._C  # noqa: SLF001  keys are nowhere else
    tensors = _tensors_of_different_keys()
    known = [
        (tensor._cdata, core._dispatch_keys(tensor).raw_repr())  # noqa: SLF001  as above
        for tensor in tensors
    ]
    avoided = 0
    for name in _STANDING_FOR_OTHERS:
        avoided |= core.DispatchKeySet(getattr(core.DispatchKey, name)).raw_repr()
    if len({keys for _, keys in known}) < len(known):
        return "dispatch keys of different tensors are the same"
    return _native.torch_find_tensor_keys(known, avoided)


def _tensors_of_different_keys() -> list[Any]:
    torch: Any = sys.modules["torch"]
    tensors = [torch.empty(3, dtype=torch.complex64, device=device) for device in ("cpu", "meta")]
    return tensors + [tensor.conj() for tensor in tensors]
