"""The profilers that the PyTorch benchmarks compare, each as a context manager."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import torch
from torch.profiler import ProfilerActivity
from torch.utils._python_dispatch import TorchDispatchMode

import deepcontext
from deepcontext import _native


@contextlib.contextmanager
def empty_observer() -> Iterator[None]:
    """A RecordFunction observer that does nothing: the floor of this mechanism."""
    torch._C._autograd._set_empty_test_observer(True, 1.0)
    try:
        yield
    finally:
        torch._C._autograd._clear_callbacks()


@contextlib.contextmanager
def deepcontext_session(**options: object) -> Iterator[None]:
    deepcontext.start(None, **options)
    try:
        yield
    finally:
        deepcontext._MANAGER.stop()


@contextlib.contextmanager
def registered_observer() -> Iterator[None]:
    """Our observer while nothing is recorded: it asks for no inputs, and an end looks for open levels."""
    with deepcontext_session(memory=False, cpu_rate=0):
        _native.end()
        yield


class Exit:
    """Time that leaving torch.profiler took, in ns."""

    ns = 0


@contextlib.contextmanager
def torch_profiler(**options: object) -> Iterator[None]:
    profiler = torch.profiler.profile(activities=[ProfilerActivity.CPU], **options)
    profiler.__enter__()
    try:
        yield
    finally:
        begun = time.perf_counter_ns()
        profiler.__exit__(None, None, None)
        Exit.ns = time.perf_counter_ns() - begun


class _PassingMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


OBSERVERS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "off": contextlib.nullcontext,
    "off, again": contextlib.nullcontext,  # what it differs from "off" is noise
    "outside a recording": registered_observer,
    "empty observer": empty_observer,
    "deepcontext": deepcontext_session,
    "deepcontext operators only": lambda: deepcontext_session(memory=False, cpu_rate=0),
    "deepcontext operators, shapes": lambda: deepcontext_session(
        memory=False, cpu_rate=0, shapes=True
    ),
    "torch.profiler": torch_profiler,
    "torch.profiler with_stack": lambda: torch_profiler(with_stack=True),
    "torch.profiler all": lambda: torch_profiler(
        with_stack=True, record_shapes=True, profile_memory=True
    ),
    "TorchDispatchMode": _PassingMode,
}
