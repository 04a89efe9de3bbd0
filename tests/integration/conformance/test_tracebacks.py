"""A program that raises writes the same to standard error, and sees the same stack, as under python.

The traceback of an exception has no frame of the profiler, wherever in a framework it was raised.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("jax")

# Runs every part of the program that is named in WAYS, and shows what each raises.
PROGRAM = """\
import asyncio, subprocess, sys, threading, traceback, warnings
{framework}
def numbers():
    yield 1
    yield work()
async def task(): return work()
def thread():
    one = threading.Thread(target=work)
    one.start()
    one.join()
if 'child' in sys.argv: work()
for way in ({ways},):
    print(way.__name__, file=sys.stderr)
    try:
        way()
    except Exception:
        traceback.print_exc()
def child(): subprocess.run([sys.executable, __file__, 'child'])
thread()
child()
list(numbers())
"""
COMMON = ("work", "thread", "lambda: list(numbers())", "lambda: asyncio.run(task())")
TORCH = """\
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        if x.numel() == 2: raise ValueError("in forward")
        warnings.warn("seen from its caller", stacklevel=2)
        return x * 2
class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x): return x * 2
    @staticmethod
    def backward(context, gradient): raise ValueError("in backward")
def fail(*_): raise ValueError("in a hook")
def work(): return Model()(torch.ones(2))
x = torch.ones(3, requires_grad=True)
def warn(): return Model()(x)
def backward(): Double.apply(x).sum().backward()
def hook(of):
    of.register_hook(fail)
    of.sum().backward()
def module_hook(register):
    model = Model()
    getattr(model, register)(fail)
    model(x).sum().backward()
def step():
    optimizer = torch.optim.SGD([x], lr=0.1)
    optimizer.register_step_pre_hook(fail)
    optimizer.step()
def load(): list(torch.utils.data.DataLoader([1, 2], collate_fn=fail))
"""
TORCH_WAYS = (
    *COMMON,
    "warn",
    "backward",
    "lambda: hook(x * 2)",
    *(
        f"lambda: module_hook('{name}')"
        for name in ("register_forward_hook", "register_full_backward_hook")
    ),
    "step",
    "load",
    "lambda: torch.ones(2) @ torch.ones(3)",
)
JAX = """\
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def inner(x):
    warnings.warn("seen from its caller", stacklevel=2)
    if x > 0:
        return x
    return -x
@jax.jit
def outer(x): return inner(x) * 2
def fail(x): raise ValueError("in a callback")
def work(): return outer(jnp.ones(()))
def callback():
    shape = jax.ShapeDtypeStruct((), np.float32)
    jax.jit(lambda x: jax.pure_callback(fail, shape, x))(1.0).block_until_ready()
def filtering(mode):
    jax.clear_caches()
    jax.config.update('jax_debug_nans', False)
    jax.config.update('jax_traceback_filtering', mode)
    warnings.simplefilter('default')  # and say again what was said
def session():
    for _ in range(2): jax.profiler.start_trace('trace')
@jax.jit
def stack(x):
    traceback.print_stack()
    return x
def checked():
    jax.config.update('jax_debug_nans', True)
    jax.jit(jnp.log)(-1.0)
"""
JAX_WAYS = (
    *COMMON,
    "callback",
    "lambda: jax.debug.callback(fail, 1.0)",
    "lambda: jnp.ones(2) @ jnp.ones(3)",
    "lambda: jax.jit(lambda x: x)('text')",
    "lambda: jax.grad(outer)(1.0)",
    "lambda: jax.pmap(inner)(jnp.ones(1))",
    "lambda: jax.jit(outer).lower(1.0)",
    "lambda: jax.jit(jnp.sin).lower(1.0).compile()(jnp.ones(2))",
    "lambda: jax.device_put(object())",
    "lambda: stack(1.0)",
    "session",
    "checked",
)


@pytest.mark.long
def test_torch(same_as_python: Any) -> None:
    same_as_python(PROGRAM.format(framework=TORCH, ways=", ".join(TORCH_WAYS)), status=1)


@pytest.mark.long
def test_jax(same_as_python: Any) -> None:
    """The default comes last, for what the program and its child do not catch."""
    ways = [
        way
        for mode in ("off", "remove_frames", "auto")
        for way in (f"lambda: filtering('{mode}')", *JAX_WAYS)
    ]
    source = PROGRAM.format(framework=JAX, ways=", ".join(ways))
    environment = {"JAX_PLATFORMS": "cpu"}
    same_as_python(source, status=1, environment=environment, normalize=without_times)


def without_times(text: str) -> str:
    """Leave out the time and thread with which XLA begins the lines of its log."""
    return re.sub(r"(?m)^[IWEF]\d{4} [\d:.]+ +\d+ ", "", text)
